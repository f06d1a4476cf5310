//! The names of the simulated disk: directories, the files they name, and each directory's changes
//! since it was last flushed.
//!
//! It promises that every unflushed change can be undone, last one first, and that a file belongs to
//! its handles and not to its name. It must never know effects, faults or who chooses what is lost.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::content::Content;

/// A file without its name: directories and open handles share it.
#[derive(Default)]
pub(super) struct Inode(RwLock<Content>);

impl Inode {
    pub(super) fn of(content: Content) -> Arc<Inode> {
        Arc::new(Inode(RwLock::new(content)))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Content> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Content> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy(&self) -> Arc<Inode> {
        Inode::of(self.read().clone())
    }
}

pub(super) enum Node {
    File(Arc<Inode>),
    Directory(Directory),
}

/// A change of a directory since it was flushed, with what undoing it needs.
pub(super) enum Change {
    Create { name: String },
    CreateDir { name: String },
    Rename { from: String, to: String, replaced: Option<Arc<Inode>> },
    Remove { name: String, file: Arc<Inode> },
}

#[derive(Default)]
pub(super) struct Directory {
    pub(super) entries: BTreeMap<String, Node>,
    /// In the order they were made.
    pub(super) unflushed: Vec<Change>,
}

impl Directory {
    /// The directory these names lead to.
    pub(super) fn descend(&self, names: &[&str]) -> io::Result<&Directory> {
        names.iter().try_fold(self, |directory, name| match directory.entries.get(*name) {
            Some(Node::Directory(next)) => Ok(next),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        })
    }

    pub(super) fn descend_mut(&mut self, names: &[&str]) -> io::Result<&mut Directory> {
        names.iter().try_fold(self, |directory, name| match directory.entries.get_mut(*name) {
            Some(Node::Directory(next)) => Ok(next),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        })
    }

    pub(super) fn file(&self, name: &str) -> io::Result<&Arc<Inode>> {
        match self.entries.get(name) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Whether `from` may take the name `to`; otherwise the error the operating system would give.
    pub(super) fn may_rename(&self, from: &str, to: &str) -> io::Result<()> {
        match (self.entries.get(from), self.entries.get(to)) {
            (None, _) => Err(ErrorKind::NotFound.into()),
            (Some(Node::File(_)), Some(Node::Directory(_))) => Err(ErrorKind::IsADirectory.into()),
            (Some(Node::Directory(_)), Some(Node::File(_))) => Err(ErrorKind::NotADirectory.into()),
            (Some(Node::Directory(_)), Some(Node::Directory(_))) => Err(ErrorKind::DirectoryNotEmpty.into()),
            (Some(_), None) | (Some(Node::File(_)), Some(Node::File(_))) => Ok(()),
        }
    }

    /// The name is free: the caller has looked.
    pub(super) fn create(&mut self, name: &str) -> Arc<Inode> {
        let file = Arc::new(Inode::default());
        self.entries.insert(name.to_owned(), Node::File(Arc::clone(&file)));
        self.unflushed.push(Change::Create { name: name.to_owned() });
        file
    }

    /// The name is free: the caller has looked.
    pub(super) fn create_dir(&mut self, name: &str) {
        self.entries.insert(name.to_owned(), Node::Directory(Directory::default()));
        self.unflushed.push(Change::CreateDir { name: name.to_owned() });
    }

    /// Allowed by `may_rename`.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(node) = self.entries.remove(from) {
            let replaced = match self.entries.insert(to.to_owned(), node) {
                Some(Node::File(file)) => Some(file),
                Some(Node::Directory(_)) | None => None,
            };
            let (from, to) = (from.to_owned(), to.to_owned());
            self.unflushed.push(Change::Rename { from, to, replaced });
        }
    }

    /// The name is a file's: the caller has looked.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(Node::File(file)) = self.entries.remove(name) {
            self.unflushed.push(Change::Remove { name: name.to_owned(), file });
        }
    }

    /// Undoes the unflushed changes from number `first` on. A file that comes back does so with its
    /// flushed content: whatever else was written to it lost its only way to the medium.
    pub(super) fn undo_from(&mut self, first: usize) {
        for change in self.unflushed.split_off(first).into_iter().rev() {
            match change {
                Change::Create { name } | Change::CreateDir { name } => {
                    self.entries.remove(&name);
                }
                Change::Remove { name, file } => self.bring_back(name, &file),
                Change::Rename { from, to, replaced } => {
                    if let Some(node) = self.entries.remove(&to) {
                        self.entries.insert(from, node);
                    }
                    if let Some(file) = replaced {
                        self.bring_back(to, &file);
                    }
                }
            }
        }
    }

    fn bring_back(&mut self, name: String, file: &Inode) {
        let flushed = file.read().flushed();
        self.entries.insert(name, Node::File(Inode::of(flushed)));
    }

    /// An independent copy of the whole tree, flushed and unflushed. A file has one name, so each inode
    /// is met once, in the tree or in the change that took its name away.
    pub(super) fn copy(&self) -> Directory {
        let entries = self.entries.iter().map(|(name, node)| (name.clone(), node.copy()));
        Directory { entries: entries.collect(), unflushed: self.unflushed.iter().map(Change::copy).collect() }
    }
}

impl Node {
    fn copy(&self) -> Node {
        match self {
            Node::File(file) => Node::File(file.copy()),
            Node::Directory(directory) => Node::Directory(directory.copy()),
        }
    }
}

impl Change {
    fn copy(&self) -> Change {
        match self {
            Change::Create { name } => Change::Create { name: name.clone() },
            Change::CreateDir { name } => Change::CreateDir { name: name.clone() },
            Change::Remove { name, file } => Change::Remove { name: name.clone(), file: file.copy() },
            Change::Rename { from, to, replaced } => Change::Rename {
                from: from.clone(),
                to: to.clone(),
                replaced: replaced.as_ref().map(|file| file.copy()),
            },
        }
    }
}

/// The names of a path from the root of the disk, which is also where a relative path starts.
pub(super) fn names(path: &Path) -> io::Result<Vec<&str>> {
    let names = path.components().filter_map(|component| match component {
        Component::RootDir | Component::CurDir => None,
        Component::Normal(name) => Some(name.to_str().ok_or(ErrorKind::InvalidInput.into())),
        // The simulated disk has no links, and nobody who uses it has a reason to climb.
        Component::ParentDir | Component::Prefix(_) => Some(Err(ErrorKind::InvalidInput.into())),
    });
    names.collect()
}
