//! The scripts that are known: the SHA1 of each body, and what runs in its place.
//!
//! Promise: every row stands in docs/scripts.md, with its library and its meaning; no SHA1 stands here twice. Must never know
//! what a native does.
//!
//! `lines` of a body: the line of each `redis.call` in their order, then of what else can fail in it, in the order that the
//! native counts them. tests/fixtures/scripts/README.md says how to add one.

use crate::frontends::resp::scripts::run::{Ran, Script};
use crate::frontends::resp::scripts::{locks, many_locks, rate_limits, windows};

/// One body.
pub struct Body {
    pub sha1: &'static str,
    pub lines: &'static [u16],
}

/// What runs in the place of some bodies.
pub struct Native {
    pub name: &'static str,
    pub run: fn(&mut Script<'_, '_, '_>) -> Ran,
    /// How many keys it needs at least.
    pub keys: usize,
    /// How many arguments it needs at least.
    pub args: usize,
    /// Whether it may write.
    pub writes: bool,
    pub bodies: &'static [Body],
}

const fn body(sha1: &'static str, lines: &'static [u16]) -> Body {
    Body { sha1, lines }
}

/// A native of this name, for so many keys and arguments.
macro_rules! native {
    ($module:ident::$name:ident, $keys:literal, $args:literal, [$($body:expr),* $(,)?]) => {
        native!($module::$name as $name, $keys, $args, true, [$($body),*])
    };
    ($module:ident::$name:ident asks, $keys:literal, $args:literal, [$($body:expr),* $(,)?]) => {
        native!($module::$name as $name, $keys, $args, false, [$($body),*])
    };
    ($module:ident::$run:ident as $name:ident, $keys:literal, $args:literal, $writes:literal, [$($body:expr),* $(,)?]) => {
        Native {
            name: stringify!($name),
            run: $module::$run,
            keys: $keys,
            args: $args,
            writes: $writes,
            bodies: &[$($body),*],
        }
    };
}

/// The table.
pub static NATIVES: &[Native] = &[
    native!(
        locks::delete_if_equal,
        1,
        1,
        [
            body("c3f8721cbb97f72bc19e972846bd7aaf91901658", &[2, 6]),
            body("4e92fdc63815b3a0a2dd1c1df3694de73607c88d", &[2, 3]),
            body("a4aada0b36710970eedaaaeec4a6b7d8c78c4f80", &[2, 3]),
            body("b948f76fda6b97319d3426a2fb42b0d4f02c7146", &[1, 1]),
            body("ae3671744a5dbb24ea37ef607b8b10ac7856d43e", &[1, 1]),
            body("bfb9f817b2e860fe4fc58656b2bf657d3fdc2be1", &[3, 4]),
            body("ea535b5ce831428455ea063dc10eadacff025884", &[5, 9]),
            body("cf0e94b2e9ffc7e04395cf88f7583fc309985910", &[1, 1]),
            body("4dbb87cd80182f627d42cf6042188ecf00a1ff12", &[1, 2]),
            body("da225123b2af4a41136fdba7ffac1e045e344da1", &[2, 3]),
            body("b6a796aa8d73bb4ce6e26afe648196d086a8d1f1", &[1, 2]),
            body("5cc368fb92acd8fee3a986dc8e971d6cf28c3b44", &[9, 12]),
            body("36c51548bc94e82390cca93961e4cfcd20a2c1f7", &[4, 5]),
            body("fd83166fb3d7235e3ace652b700c9e217c1adc1f", &[1, 2]),
            body("7157921a7cc7cfba979acf6d63f073151df17d12", &[5, 6]),
            body("0a87223fb92fcc2308021a1b6da07197448b6402", &[2, 3]),
            body("a0b59436cc046114766453c42adbb4c9c62ca99c", &[5, 6]),
            body("e9f69f2beb755be68b5e456ee2ce9aadfbc4ebf4", &[1, 1]),
            body("59bc3e108ef7f99b02996a98489960c0edcc9945", &[3, 4]),
            body("daf86bbf8740dd3ca86733367a016364b2110627", &[2, 3]),
            body("544c68b7ffd46e5d7ccc58a27204557efba43310", &[1, 2]),
            body("ff62909a2bffd84e70074a60e795f395ccb75ed7", &[2, 3]),
            body("647c65a442733a1aa440f99908d249d13b4d6c4a", &[1, 2]),
            body("d10461dc5ff043322a9d59734d0285f83706c732", &[1, 1]),
            body("85d2723b8dd4a73a5114d0d544e4597994d867ff", &[5, 7]),
            body("fc03c85cef965af38f17fef05d68cc66c7d85c96", &[2, 3]),
            body("2e47b373b4dbd63ee966d2eb9fe24ed6a138ad4e", &[1, 1]),
            body("cb0427378f700ddb2f0e9394dbb0a40bd6dba04a", &[1, 2]),
            body("18b2a577dbe847b16bebde190d69a1613d68e60e", &[1, 2]),
            body("8e4905cee18e7c3188d10f2b8b170e403baed34f", &[1, 2]),
            body("963db4d9f0ccfdb859098be0b29f8b41dc02ed97", &[1, 2]),
            body("00583931c4e4d483f6233879c133c71ed5393f9d", &[2, 3]),
            body("194f3902b2dd08557818d09fc2e7682d91480e53", &[1, 2]),
        ]
    ),
    native!(locks::delete_if_equal_key, 2, 0, [body("55aab60f930aa7812474a8f26f53a209edf7b8e1", &[3, 4])]),
    native!(
        locks::delete_if_equal_or_nil,
        1,
        1,
        [
            body("3c14d7340cadd745089bf4620ec90bd0354f7f2f", &[1, 1]),
            body("ffc8de0b902f7b6119a6875b199c5f7beaa07add", &[5, 6]),
        ]
    ),
    native!(
        locks::delete_if_equal_or_nil as delete_if_equal_true,
        1,
        1,
        true,
        [
            body("356d97191f2b63031781ccc0e8e82f02e1995a90", &[1, 3]),
            body("f0f9038aa2b6d6c3436c72d147573ea2a58f0ef2", &[1, 3]),
        ]
    ),
    native!(locks::delete_if_equal_or_missing, 1, 1, [body("e950836ed1e694540c503ef9972b8de518044d3b", &[2, 4])]),
    native!(
        locks::unset_lock,
        1,
        1,
        [
            body("241e4ca540a1cc4ec1f32d9eb9f879e607d7e6e5", &[1, 5]),
            body("0e084295a6567dabd5b7d5b4c99018cff95fceff", &[2, 6]),
        ]
    ),
    native!(
        locks::pexpire_if_equal,
        1,
        2,
        [
            body("1cac51482acf5858da00f6d685d68f886cd6b6b2", &[2, 6]),
            body("ba015a80261b616e7a62d35df0b8e3edbe6c9414", &[2, 3]),
            body("a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf", &[1, 1]),
            body("50f5ab4d38adaf78b662a67356cf1fe302b3e00f", &[1, 2]),
            body("bf3108245472c550b02852e1e425128e5eb399c4", &[2, 3]),
            body("b8781a7c50e72ae869ca41c3fe9f504e365f3881", &[1, 2]),
            body("e218d686a8f90368e5cd45074f06ce766cad9987", &[1, 2]),
            body("594683e49a64ebaf975caf5f8079a1d097c438f1", &[6, 9]),
            body("3950eadb2785a5afcc0daf9e56adc0bbd14017a4", &[2, 3]),
            body("e95849a1757fe494b3c802dc09b717d0c074eb21", &[1, 1]),
            body("53692746b44cae854b8dfa32b177218bbe40baee", &[2, 3]),
            body("d75bb8b5bd13532ddedd17762e772346e39b321e", &[2, 3]),
            body("67256370c2d1c87e2250898075542b1a7fa5b917", &[1, 2]),
        ]
    ),
    native!(
        locks::pexpire_if_equal_or_nil,
        1,
        2,
        [
            body("84d43a729210febc048241c668a2be7a0aafe030", &[1, 1]),
            body("558eaccb34def806857a3191c632889ba9471a73", &[6, 7]),
            body("879e0f7b8d83c3266d4e996627438c05dbda0b89", &[1, 2]),
        ]
    ),
    native!(locks::expire_if_equal, 1, 2, [body("8a7fdef25bdef981900f982f5773edaf35000372", &[3, 5, 7])]),
    native!(locks::expire_number_if_equal, 1, 2, [body("4294933f08f20c8eba99ef809315810389dfb0a3", &[6, 7])]),
    native!(locks::expire_if_equal_inverted, 1, 2, [body("91d2b7405df91e02c3e2389f7f1c089b9f9e2632", &[1, 2])]),
    native!(locks::expire_or_persist_if_equal, 1, 2, [body("d5f94f1848f0c54fff99d99dbc4d54184a157c02", &[1, 3, 6, 2])]),
    native!(
        locks::extend_by,
        1,
        2,
        [
            body("4a484ac024e9b025224cd9f8e1d59dbf3c15d00d", &[2, 6, 13, 13]),
            body("e03e083d81632b90688e6621ceb7b922dea67c5d", &[6, 10, 17, 17]),
            body("e1439414a5c955ffdfc945cec183032fc9948d27", &[5, 9, 16, 16]),
        ]
    ),
    native!(locks::extend_by_or_to, 1, 3, [body("a4e8783852e6b949f9ef3a97212805108459a890", &[2, 6, 18, 16])]),
    native!(locks::extend_seconds_by, 1, 2, [body("459cfa2e6c93bad7aa427b850f346bf836b2002d", &[3, 8, 10, 10])]),
    native!(locks::extend_if_enough_left, 1, 3, [body("c000e088bd4aca36ab429d3b7a16fc736f4cb6f1", &[1, 16, 18, 11])]),
    native!(locks::refresh_by_set, 1, 2, [body("17a49af0c4b1a9034503fa84f3570f5ca76c4cbf", &[2, 5])]),
    native!(locks::refresh_by_set_keys, 3, 0, [body("78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb", &[12, 15])]),
    native!(locks::refresh_by_set_or_err, 1, 2, [body("009e6775acf362b837433e2ab6f2b772e391079e", &[2, 3])]),
    native!(locks::set_nx_px, 1, 2, [body("862f31bf38e9b63ce28d6e9e5143551bb34ef981", &[1])]),
    native!(locks::set_nx_maybe_px, 1, 1, [body("0c52e1b3d15882965502d8b147c0bb92c9cdd0b4", &[6, 9])]),
    native!(locks::setnx_pexpire, 1, 2, [body("5688a2541c9edd77746bcd2385e65ff3639a664f", &[2, 4])]),
    native!(locks::setnx_expire, 1, 2, [body("7bcdefae3714859f68f1f2377bddae74a1af9391", &[2, 4])]),
    native!(locks::setnx_expire_keys, 3, 0, [body("a4fec7708e82eff2f04b4b6cc5327db06fab7634", &[2, 4])]),
    native!(locks::add, 1, 2, [body("a08c9c69b7c07ae2485190873b90d128a23e502d", &[1, 1])]),
    native!(locks::hold_or_take, 1, 2, [body("4181d5af82ff00f12fe8f2952fed7db5774fc369", &[5, 5])]),
    native!(
        locks::take_or_refresh,
        1,
        2,
        [
            body("c75a9bf1538efcdb1f383acc3e273c5089d57e58", &[1, 3]),
            body("aecadef15d24ccd9360d8641cdec8e0337a0d343", &[2, 4]),
        ]
    ),
    native!(locks::take_or_refresh_else_nil, 1, 2, [body("7fe7b0bc5c4277123d3b46d49d1c5a8bc6e4fe8a", &[1, 1, 2])]),
    native!(
        locks::take_or_refresh_if_asked,
        1,
        3,
        [
            body("a90bf4be8a6e440e3cc24540eb2f9ff1e16fbcc3", &[1, 1, 2]),
            body("ceb2b2062e40c51a2b3963fd078bc71f11bdc65c", &[1, 1, 2]),
        ]
    ),
    native!(locks::take_or_pexpire, 1, 2, [body("15c8f9866a66624fdde522d8ee86a463c6a7b821", &[6, 9, 12, 13])]),
    native!(
        locks::take_or_pexpire_true,
        1,
        2,
        [
            body("8426c8df41c64d8177dce3ecbbe9146ef3759cd2", &[1, 3, 6]),
            body("6d2bc6d16248df19e144841297222544e3c7800a", &[1, 1, 1]),
            body("175897a4e379e99e79a54937be09226f76cdcfe5", &[1, 3, 6]),
        ]
    ),
    native!(
        locks::take_or_pexpire_or_minus_one,
        1,
        2,
        [
            body("3e7c6bf3e080bb97a92e77362149c26252b98212", &[1, 3, 5]),
            body("9f614a785a5f9ae8c6396c6b4bf94d2087342603", &[1, 3, 5]),
        ]
    ),
    native!(locks::pexpire_or_take, 1, 2, [body("b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", &[2, 3, 4])]),
    native!(locks::take_unless_held, 1, 3, [body("0eafb65e6aa537bcc966e2af2a66dc7f3f66e121", &[13, 19, 28, 8])]),
    native!(locks::take_by_prefix, 1, 3, [body("80a1b5f2cfccec3b7119ba7721d2127682b691a7", &[2, 5, 5])]),
    native!(locks::pttl_if_equal asks, 1, 1, [body("f5f7bd3a3aa4a63c507c1155c5ea1219b350d992", &[2, 3])]),
    native!(locks::pttl_if_equal_or_minus_three asks, 1, 1, [
        body("6484da7d58920897fdc22b7f9afd1a3d47524ea8", &[1, 1]),
    ]),
    native!(locks::ttl_if_equal asks, 1, 1, [
        body("f908d3f43dbcabc68fc0c9ecaf1fa4a285ecdb0a", &[1, 5]),
        body("2239e3d89e276c90ec523515c30bcf0071823c7e", &[2, 6]),
    ]),
    native!(locks::value_and_pttl asks, 1, 0, [
        body("6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a", &[1, 2]),
        body("cd1ae9bb543136ebc0a80a277cd59a7cec83b296", &[1, 1]),
        body("78d2ca48a6dc9ef6892059792a3a0c5237733d64", &[1, 1]),
    ]),
    native!(locks::value_and_pttl_or_nil asks, 1, 0, [body("994908155dadb1bed08a5af6dee7fedf956c4826", &[1, 6])]),
    native!(
        many_locks::acquire_all,
        1,
        2,
        [
            body("e5a322e2634ef59a516e8ea150cb085afafee684", &[4, 11]),
            body("96da70f7716f27d278a5218544df37fd8b0a5e4c", &[4, 11]),
            body("d01fb69e6ecc8bad3ca9bacba9f4f9e96862313f", &[4, 11]),
        ]
    ),
    native!(many_locks::acquire_all_selected, 1, 3, [body("1b77b94aa78451d55dfa97e18819bfbfc596cb5b", &[4, 9, 16])]),
    native!(many_locks::acquire_free, 1, 2, [body("6d3be821fec3ee441e2e0099186b83490d711fdd", &[5, 11])]),
    native!(many_locks::acquire_batch, 1, 0, [body("514d8d1b08387624661da2a9098d3949b633eb3a", &[3, 11])]),
    native!(
        many_locks::extend_all,
        1,
        2,
        [
            body("ce46f80993d5dac20dd066eb301a4e37994bdbed", &[4, 11]),
            body("aed6f382e410db8ba7926d4e5e9aab410bf2a78a", &[4, 11]),
            body("acaf90b4697bb48bb5f603e9e613a54df7536c70", &[4, 11]),
            body("1d48b4c6fea2cdadc46b3346de5c2eaf121c7bb3", &[4, 11]),
        ]
    ),
    native!(many_locks::extend_all_selected, 1, 3, [body("820e9778d2b6733e9ed771e4be90ae73a95a6f3b", &[4, 9, 16])]),
    native!(many_locks::extend_if_all_equal, 1, 2, [body("c2b348917d23acc28b1c31a7efdb419eed04c7f7", &[4, 14])]),
    native!(
        many_locks::release_all,
        1,
        1,
        [
            body("0f0f23b9048b36752b5be114f357ba083449f908", &[5, 6]),
            body("e4612211c9f8f51c257e26e056b0a654b3187242", &[5, 6]),
            body("517e7ed95f00c0c4a209c6a7afcc6ab797d30b85", &[5, 6]),
        ]
    ),
    native!(many_locks::release_all_selected, 1, 2, [body("df51f6837dcfe303d334e6abea9aeae192bab216", &[4, 10, 11])]),
    native!(many_locks::release_each, 1, 1, [body("83ddeb8769fe02bdc67367192ee8a6f61e11a7a8", &[5, 6])]),
    native!(many_locks::obtain_all, 1, 3, [body("eb0c00d98f6f33b4262419a509002884540f30be", &[8, 18, 32, 36])]),
    native!(many_locks::refresh_if_all_equal, 1, 2, [body("5a22d7e8431313862816d4416b5e46dd70fc340d", &[5, 14])]),
    native!(many_locks::release_if_all_equal, 1, 1, [body("9470c810040e272ee6c579d8d4331aaf6332a7b1", &[5, 13])]),
    native!(many_locks::shortest_pttl asks, 1, 1, [body("66e1084c2d842a7e8c271925aae90219fac4e129", &[5, 15])]),
    native!(
        rate_limits::incrby_if_exists,
        1,
        1,
        [
            body("f4a7da3e5d8ea3b46642af08427151cae0190400", &[2, 4]),
            body("cfd1b71004724e1ecc89e140bfd62342ef01b1b4", &[2, 4]),
            body("b426fc5bcc55c2068d6e45630e7def738066beab", &[2, 4]),
        ]
    ),
    native!(
        rate_limits::incrby,
        1,
        1,
        [
            body("4d15273b16b10c15e1d9202cbe93c959ab7d250b", &[2]),
            body("359043a2c1e6db97d69d4e7d10d305fce10224e2", &[2]),
        ]
    ),
    native!(
        rate_limits::incr_expire_first,
        1,
        1,
        [
            body("0d23cf1ccf81ad1452ccf307e1938d99997a6073", &[3, 5]),
            body("3558e5e19feda4d6fca7bd2770e9373874ec3b20", &[3, 6]),
        ]
    ),
    native!(
        rate_limits::incr_pexpire_first,
        1,
        1,
        [
            body("0fa9c90dc1d0dad21151e74386e59530a377c65d", &[5, 9]),
            body("5e209e83cb1af7b9ec0b9c3e76b5cd51768adaf6", &[5, 9]),
        ]
    ),
    native!(rate_limits::incrby_expire_first, 1, 2, [body("628bd136a573a06b346879695681af12ccef300f", &[3, 6])]),
    native!(rate_limits::incrby_pexpire_one, 1, 2, [body("0f8a745c1b5efe281bd1299ea0d1b2994c6ae601", &[1, 1])]),
    native!(rate_limits::expire_first_incrby, 1, 2, [body("d406c4243550d71abd3377b0046fcc528a2ce18f", &[3, 5])]),
    native!(rate_limits::pexpire_first_incrby, 1, 2, [body("b13943e359636db027ad280f1def143f02158c13", &[6, 10])]),
    native!(rate_limits::incrby_never_expiring, 1, 2, [body("c26b12703dd137939b9a69a3a9b18e906a2d940f", &[6, 10])]),
    native!(rate_limits::used asks, 1, 0, [
        body("8c4c341934502aee132643ffbe58ead3450e5208", &[5]),
        body("8e8f222ccae68b595ee6e3f3bf2199629a62b91a", &[5]),
    ]),
    native!(rate_limits::fixed_window, 1, 3, [body("957dd5853a45ba2455f6c8b90798cb5d76a0acda", &[5, 8, 11])]),
    native!(rate_limits::hits_reset_when_due, 1, 2, [body("3f424a504987d231baa2e19159bb5def8ad32f87", &[1, 2, 5])]),
    native!(rate_limits::hits_new_window, 1, 2, [body("81dbecea94d2d10514719b20ed51faf711529d9d", &[3, 5, 8, 10])]),
    native!(rate_limits::hits_new_window_only, 1, 1, [body("895b92e1712734e1b464999be23953485475357b", &[2, 4, 7])]),
    native!(rate_limits::consume, 1, 2, [body("a1de965f42e177aa339706bd580f049065eca79a", &[1, 1, 1, 1])]),
    native!(
        rate_limits::hits_with_ban,
        1,
        4,
        [body("3f481dd9e75a7c63c2facb091af19e1ab17f2cc7", &[14, 17, 21, 20, 25]),]
    ),
    native!(rate_limits::hits_continued, 1, 3, [body("f80d0c65a05e27559602a2b43fbe989df31fc5f6", &[12, 15, 19, 18])]),
    native!(
        rate_limits::hits_backoff_ttl,
        1,
        4,
        [body("b72d57bf75a045b8d6f72ca5b553e356583723f0", &[18, 21, 25, 32, 24, 29, 31]),]
    ),
    native!(
        rate_limits::hits_backoff,
        1,
        4,
        [body("b8a19d47785922bb04e7a9fdb49e90d89be1b8af", &[17, 20, 24, 26, 19, 21, 23]),]
    ),
    native!(rate_limits::read_hits asks, 1, 0, [body("4c7d9ef62b3d4f8efd8d11d5d2fd1a56b1e723bc", &[6, 16])]),
    native!(rate_limits::pass_or_pttl, 1, 2, [body("a3f9e982197e9e887f6b5dcb7ec273863bb83aad", &[5, 8, 10, 14, 6, 7])]),
    native!(
        rate_limits::hits_and_block,
        2,
        4,
        [body("f1e0da9c495676ab6904eb80db1f2811d5347f58", &[7, 8, 10, 13, 16, 18, 23, 24, 17]),]
    ),
    native!(rate_limits::compare_and_set, 1, 2, [body("782e993d12091daacc7a3164ddf5c4624fe56042", &[1, 1, 1])]),
    native!(rate_limits::compare_prefix_and_set, 1, 2, [body("f7d92c7ca476a588cb06d6d8883b3762f9ceffde", &[4, 5])]),
    native!(rate_limits::next_id, 1, 1, [body("556429c2d8baca516a475ebb22d380cbccae7313", &[2, 5, 4])]),
    native!(
        windows::window_acquire,
        2,
        3,
        [body("e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7", &[11, 15, 16, 19, 20, 21, 22, 38, 39, 42, 4, 7, 33]),]
    ),
    native!(
        windows::window_read,
        2,
        1,
        [body("e7a0a27d4101baabb124af209bb0245197a359a1", &[2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 1]),]
    ),
    native!(
        windows::weighted_window,
        2,
        3,
        [body("44b366ac3ebd2eed87395e10481fc8a177f4dbd3", &[8, 13, 24, 28, 17, 19, 20]),]
    ),
    native!(
        windows::weighted_window_by,
        2,
        4,
        [body("e1391e429b699c780eb0480350cd5b7280fd9213", &[9, 14, 25, 29, 18, 20, 21]),]
    ),
    native!(windows::weighted_usage asks, 2, 2, [
        body("65a73ac5a05bf9712903bc304b77268980c1c417", &[7, 12, 17, 19, 21]),
    ]),
    native!(
        windows::weighted_usage_limited,
        2,
        4,
        [body("e2be2bb446d8824c5a0ef425a63ad79984f4ceac", &[8, 14, 35, 37, 19, 20, 22, 25, 26]),]
    ),
    native!(
        windows::weighted_usage_counted,
        2,
        4,
        [body("eeda3f8f943f4ac572fa61f88c0fa28de9f5ed44", &[7, 9, 12, 9, 17, 18, 19, 23]),]
    ),
];
