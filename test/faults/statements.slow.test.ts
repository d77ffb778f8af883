// The writer on a real SQLite file, with every error of SQLite at everything it asks of it, one after the other.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Event } from "../../src/core/model/event.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import { accepted, batch, created, settled, started } from "../../src/store/contract/facts.ts";
import { type Database, openReadOnly, useWriteAheadLog } from "../../src/store/sqlite/database.ts";
import { openFile } from "../../src/store/sqlite/file/open-file.ts";
import { Reserve } from "../../src/store/sqlite/file/reserve.ts";
import { LogWriter } from "../../src/store/sqlite/log-writer.ts";
import { type Cell, packBatch, unpackBatches, type Written } from "../../src/store/sqlite/thread/message.ts";
import { type ConnectionFault, FailingDisk, SQLITE_CODES, type SqliteCode } from "./failing-connection.ts";

let directory = "";
let file = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-statements-"));
  file = join(directory, "belay.db");
  openFile(file).close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

type Groups = readonly (readonly (readonly [SessionId, readonly Event[]])[])[];

/** What two sessions want recorded, in this order; those of one line travel together. */
const groups = (a: SessionId, b: SessionId, n: string): Groups => [
  [
    [a, [created(a), accepted(`run_1${n}`), ...started(`run_1${n}`)]],
    [b, [created(b)]],
  ],
  [[a, [settled(`run_1${n}`)]]],
  [
    [b, [accepted(`run_2${n}`)]],
    [a, [accepted(`run_3${n}`)]],
  ],
];

const CODES = Object.keys(SQLITE_CODES) as SqliteCode[];

/** Each error once and three times in a row; those of the disk told before and after the fact. */
const KINDS: readonly Omit<ConnectionFault, "at">[] = CODES.flatMap((code) =>
  (code.startsWith("IOERR") ? (["before", "after"] as const) : (["before"] as const)).flatMap((when) =>
    [1, 3].map((times) => ({ code, when, times })),
  ),
);

describe("G28: an error of SQLite at everything the writer asks", { timeout: 120_000 }, () => {
  test.each(KINDS)(
    "$code told $when it is done, $times times",
    { meta: { id: "G28/every-statement-may-fail" } },
    (kind) => {
      for (let at = 1; ; at += 1) {
        const disk = new FailingDisk({ ...kind, at });
        const name = `${kind.code}-${kind.when}-${kind.times}-${at}`;
        const story = recordAll(groups(`ses_a${name}`, `ses_b${name}`, name), disk);
        expect(story.broken, `at the ${at}. thing`).toEqual([]);
        if (story.asked < at) return expect(at).toBeGreaterThan(10);
      }
    },
  );
});

/** Records everything once, as the engine does: what was refused is made again, what is unknown is looked up first. */
function recordAll(wanted: Groups, disk: FailingDisk): { readonly broken: readonly string[]; readonly asked: number } {
  const connect = (): Database => {
    const database = disk.open(file);
    useWriteAheadLog(database);
    return database;
  };
  const writer = new LogWriter({ file, reserve: new Reserve(`${file}.reserve`, RESERVE_BYTES), connect });
  const broken: string[] = [];
  const heads = new Map<SessionId, number>();
  disk.arm();
  try {
    for (const group of wanted) {
      let left = group;
      for (let attempt = 1; left.length > 0; attempt += 1) {
        if (attempt > ATTEMPTS_MAX) return { broken: [...broken, "it never came to an end"], asked: disk.asked };
        const answers = append(
          writer,
          left.map(([session, events]) => batch(session, heads.get(session) ?? 0, [...events])),
        );
        left = left.filter(([session, events], index) => {
          const head = headOf(session);
          const before = heads.get(session) ?? 0;
          broken.push(...untrue(answers[index], { session, before, after: before + events.length, head }));
          heads.set(session, head);
          return head === before;
        });
      }
    }
  } finally {
    disk.heal();
    writer.close();
  }
  return { broken: [...broken, ...notOnce(wanted)], asked: disk.asked };
}

const ATTEMPTS_MAX = 12;
const RESERVE_BYTES = 4_096;

interface Stands {
  readonly session: SessionId;
  readonly before: number;
  readonly after: number;
  /** What the file says, to somebody else who looks. */
  readonly head: number;
}

function untrue(written: Written | undefined, { session, before, after, head }: Stands): readonly string[] {
  const is = `${session} was at ${before} and is at ${head}`;
  if (head !== before && head !== after) return [`${is}: half a batch`];
  if (written?.kind === "appended") {
    return written.head === after && head === after ? [] : [`told ${JSON.stringify(written)}, but ${is}`];
  }
  if (written?.kind === "failed") {
    const nothing = written.code !== "unavailable" && head !== before;
    return nothing ? [`told ${written.code}, which means that nothing was written, but ${is}`] : [];
  }
  return [`told ${JSON.stringify(written)}, but ${is}`];
}

/** Each session has what was wanted, once, in order. */
function notOnce(wanted: Groups): readonly string[] {
  const database = openReadOnly(file);
  try {
    const sessions = new Set(wanted.flat().map(([session]) => session));
    return [...sessions].flatMap((session) => {
      const counts = wanted.flat().flatMap(([whose, events]) => (whose === session ? [events.length] : []));
      const rows = database
        .prepare("SELECT count FROM event WHERE session = (SELECT number FROM session WHERE id = ?) ORDER BY seq")
        .all(session);
      const found = rows.map(({ count }) => Number(count));
      return String(found) === String(counts) ? [] : [`${session} has ${found} and wanted ${counts}`];
    });
  } finally {
    database.close();
  }
}

function headOf(session: SessionId): number {
  const database = openReadOnly(file);
  try {
    const found = database
      .prepare("SELECT SUM(count) AS head FROM event WHERE session = (SELECT number FROM session WHERE id = ?)")
      .get(session);
    return Number(found?.head ?? 0);
  } finally {
    database.close();
  }
}

function append(writer: LogWriter, batches: readonly ReturnType<typeof batch>[]): readonly Written[] {
  const cells: Cell[] = [];
  for (const one of batches) packBatch(cells, one);
  return writer.append(unpackBatches(cells));
}
