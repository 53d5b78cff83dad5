//! The store: one SQLite database in a directory that one collector at a time may use.

mod counts;
mod edge;
mod gap_bin;
mod gap_bins;
pub(crate) mod health;
pub(crate) mod migrations;
pub(crate) mod packed;
pub(crate) mod past;
pub(crate) mod query;
pub(crate) mod retention;
pub(crate) mod verdict_row;
pub(crate) mod writer;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use self::migrations::MigrationError;

/// The name of the database within its directory.
const DATABASE: &str = "skewtap.db";

/// The name of the file whose lock says that a collector uses the directory.
const LOCK: &str = "lock";

/// Why a store cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made or entered.
    #[error(
        "cannot use {} as the store: {source}; make it a directory this user may write to, \
         or give another one with --store", path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another collector has it.
    #[error(
        "the store {} is in use by another collector; stop that one, \
         or give another directory with --store", path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A later version wrote it.
    #[error(
        "the store {} was written by a later version (schema {found}, this version knows up to \
         {known}); use that version, or give another directory with --store", path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The number of its schema.
        found: i64,
        /// The last number this version knows.
        known: usize,
    },
    /// It is no database, or a broken one.
    #[error(
        "the store {} is damaged: {source}; move the file away to start with an empty store, \
         or put a good copy in its place", path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A verdict of an earlier version cannot be packed.
    #[error("cannot bring the store {} to this version: {source}", path.display())]
    Pack {
        /// The database.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// SQLite cannot use it for another reason.
    #[error(
        "cannot open the store {}: {source}; make sure that the disk has room and that this \
         user may write to the file, or give another directory with --store", path.display()
    )]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// An open store, with the lock that keeps other collectors out while it lives.
#[derive(Debug)]
pub(crate) struct Store {
    /// The only connection that writes.
    pub(crate) connection: Connection,
    /// The database, for readers.
    pub(crate) path: PathBuf,
    /// Held, never read: the system gives the lock back when the process ends, however it ends.
    pub(crate) lock: File,
}

impl Store {
    /// Opens the store in `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong and what to do.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let lock = lock(directory)?;
        let path = directory.join(DATABASE);
        let connection = connect(&path).map_err(|error| open_error(&path, error))?;
        Ok(Self {
            connection,
            path,
            lock,
        })
    }
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let unusable = |source| OpenError::Directory {
        path: directory.to_owned(),
        source,
    };
    fs::create_dir_all(directory).map_err(unusable)?;
    let file = File::create(directory.join(LOCK)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: directory.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

/// Statements that a connection keeps ready; more than it has.
const KEPT_STATEMENTS: usize = 64;

/// Sets what every connection needs.
fn prepare(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(Duration::from_secs(2))?;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    // Else a statement is planned anew for each value it is given.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, MigrationError> {
    let mut connection = Connection::open(path)?;
    prepare(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // FULL: a commit returns once the disk has it, which is what an acknowledgement promises.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    migrations::migrate(&mut connection)?;
    look_into(&connection)?;
    Ok(connection)
}

/// Reads the beginning of each table, so that gross damage is found before anything is promised.
/// A full check would read all of a store of gigabytes.
fn look_into(connection: &Connection) -> Result<(), rusqlite::Error> {
    for table in [
        "observation_log",
        "verdict",
        "verdict_document",
        "gap_count",
    ] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} LIMIT 1"))?;
        let mut rows = statement.query([])?;
        rows.next()?;
    }
    Ok(())
}

fn open_error(path: &Path, error: MigrationError) -> OpenError {
    let path = path.to_owned();
    match error {
        MigrationError::Newer { found, known } => OpenError::Newer { path, found, known },
        MigrationError::Database(source) => match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                OpenError::Damaged { path, source }
            }
            _ => OpenError::Database { path, source },
        },
        MigrationError::Pack(source) => OpenError::Pack { path, source },
    }
}

#[cfg(test)]
pub(crate) mod tests;
