// The tables. SQL in a module instead of a .sql file, so that it is included in the build.
//
// Invariants
// 1. A released migration is never changed; a new version is a new entry at the end.
// 2. Guarantees are constraints: one live run per session, one outcome per run and per process, one run per key.

/** "BLAY", in the header of every Belay store. */
export const APPLICATION_ID = 0x424c4159;

/** Entry `n` migrates version `n` to `n + 1`. */
export type Migrations = readonly string[];

// @fault two-outcomes:trigger
const VERSION_1 = `
CREATE TABLE store (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  epoch       INTEGER NOT NULL,
  owner_pid   INTEGER,
  owner_since INTEGER
) STRICT;
INSERT INTO store (id, epoch) VALUES (1, 0);

-- Numbered in order of creation. Other tables refer to the number: it is a quarter of the size of an id.
CREATE TABLE session (
  number     INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  title      TEXT,
  phase      TEXT    NOT NULL DEFAULT 'open' CHECK (phase IN ('open', 'closed')),
  kept_from  INTEGER NOT NULL DEFAULT 1
) STRICT;

-- One row for each append. A table with a rowid, not clustered by its key: appends of many sessions then go to the same
-- page, which measured two to three times as many of them a second.
CREATE TABLE event (
  session INTEGER NOT NULL REFERENCES session (number),
  seq     INTEGER NOT NULL CHECK (seq > 0),
  count   INTEGER NOT NULL CHECK (count > 0),
  at      INTEGER NOT NULL,
  data    TEXT    NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT;

CREATE TABLE snapshot (
  session INTEGER PRIMARY KEY REFERENCES session (number),
  seq     INTEGER NOT NULL,
  data    TEXT    NOT NULL
) STRICT;

-- A projection of event, written in the same transaction.
CREATE TABLE run (
  id          TEXT    NOT NULL PRIMARY KEY,
  session     INTEGER NOT NULL REFERENCES session (number),
  phase       TEXT    NOT NULL DEFAULT 'waiting' CHECK (phase IN ('waiting', 'live', 'settled')),
  accepted_at INTEGER NOT NULL,
  settled_at  INTEGER,
  key         TEXT,
  content     TEXT,
  outcome     TEXT,
  CHECK ((phase = 'settled') = (outcome IS NOT NULL)),
  CHECK ((phase = 'settled') = (settled_at IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX run_in_order ON run (session, accepted_at);
CREATE INDEX run_without_outcome ON run (session, accepted_at) WHERE phase <> 'settled';
CREATE UNIQUE INDEX one_run_per_key ON run (session, key) WHERE key IS NOT NULL;

-- A lane has at most one live run. Not a rule we follow: a row that cannot exist.
CREATE UNIQUE INDEX one_live_run_per_session ON run (session) WHERE phase = 'live';

-- A run settles once.
CREATE TRIGGER one_outcome_per_run BEFORE UPDATE ON run WHEN old.phase = 'settled'
BEGIN
  SELECT RAISE(ABORT, 'the run has an outcome already');
END;

CREATE TABLE call (
  id         TEXT    NOT NULL PRIMARY KEY,
  session    INTEGER NOT NULL REFERENCES session (number),
  settled_at INTEGER NOT NULL,
  outcome    TEXT    NOT NULL
) STRICT;

CREATE TABLE process (
  id           TEXT    NOT NULL PRIMARY KEY,
  session      INTEGER NOT NULL REFERENCES session (number),
  requested_at INTEGER NOT NULL,
  settled_at   INTEGER,
  outcome      TEXT,
  CHECK ((settled_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE UNIQUE INDEX process_in_order ON process (session, requested_at);
-- As large as what is going on, however long the log is.
CREATE INDEX process_without_outcome ON process (session, requested_at) WHERE outcome IS NULL;

-- A process settles once.
CREATE TRIGGER one_outcome_per_process BEFORE UPDATE ON process WHEN old.outcome IS NOT NULL
BEGIN
  SELECT RAISE(ABORT, 'the process has an outcome already');
END;
`;

/** The tenant of a session, derived from its id, so that listing a tenant's sessions reads no others. */
const VERSION_2 = `
ALTER TABLE session ADD COLUMN tenant TEXT GENERATED ALWAYS AS
  (CASE WHEN instr(id, '.') > 0 THEN substr(id, 5, instr(id, '.') - 5) END) VIRTUAL;

CREATE INDEX session_of_tenant ON session (tenant, number) WHERE tenant IS NOT NULL;
`;

/** The working directory of a session. Earlier sessions have none. */
const VERSION_3 = `
ALTER TABLE session ADD COLUMN cwd TEXT;
`;

/** Checksums, so that damage to text is detected. Earlier rows have none. */
const VERSION_4 = `
ALTER TABLE session ADD COLUMN sum INTEGER;
ALTER TABLE event ADD COLUMN sum INTEGER;
ALTER TABLE snapshot ADD COLUMN sum INTEGER;
ALTER TABLE run ADD COLUMN sum INTEGER;
ALTER TABLE run ADD COLUMN outcome_sum INTEGER;
ALTER TABLE call ADD COLUMN outcome_sum INTEGER;
ALTER TABLE process ADD COLUMN outcome_sum INTEGER;
`;

/**
 * An index of a session's calls, so that it can be deleted without reading those of others; and memos, by the id of
 * their session, which may not exist yet.
 */
const VERSION_5 = `
CREATE INDEX call_of_session ON call (session, settled_at);

CREATE TABLE memo (
  session TEXT    NOT NULL,
  name    TEXT    NOT NULL,
  actor   TEXT,
  at      INTEGER NOT NULL,
  data    TEXT    NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX one_memo_per_name ON memo (session, name);
CREATE INDEX memo_of_actor ON memo (actor, at) WHERE actor IS NOT NULL;
CREATE INDEX memo_in_time ON memo (at);
`;

export const MIGRATIONS: Migrations = [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5];
