// The place of one round: a directory with a store, the address of its server, and the clients that find it there.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SeededChooser } from "../../sim/chooser.ts";
import { type ConnectOptions, connectBelay } from "../../src/client/belay-client.ts";
import { socketFetch } from "../../src/client/transport/node-transport.ts";
import type { Fetch } from "../../src/client/transport/reply.ts";
import { webClock } from "../../src/client/web-clock.ts";
import { PAGE_ROWS_MAX } from "../../src/core/limits.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { RunId, SessionId } from "../../src/core/model/ids.ts";
import type { RunRow } from "../../src/core/model/rows.ts";
import { readAll } from "../../src/engine/log/replay.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { openReadOnly } from "../../src/store/sqlite/database.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import type { Logs } from "../oracle/log-index.ts";
import type { Clients } from "./clients.ts";
import type { ServerWish } from "./server.ts";

const TOKEN = "a-token-for-the-crash-loop";

/** Pauses of clients are shortened by this, so that restarts and not clients decide how fast it goes. */
const HURRY = 5;
const PAUSE_MS_MAX = 10_000;

const hurriedClock: Clock = {
  ...webClock,
  after: (ms, call, kind) => webClock.after(ms <= PAUSE_MS_MAX ? ms / HURRY : ms, call, kind),
};

export class CrashFixture {
  readonly dir: string;
  readonly store: string;
  readonly hits: string;
  readonly effects: string;
  readonly notices: string;
  readonly #door: "socket" | "tcp";
  #port = 0;
  #keys = 0;

  constructor(dir: string, door: "socket" | "tcp") {
    mkdirSync(join(dir, "workspace"), { recursive: true });
    this.dir = dir;
    this.#door = door;
    this.store = join(dir, "store.db");
    this.hits = join(dir, "hits");
    this.effects = join(dir, "effects");
    this.notices = join(dir, "notices");
  }

  /** One that no client here has used before. */
  #newKey(): string {
    this.#keys += 1;
    return `own-${this.#keys}`;
  }

  /** The port it was given first is the one it is found at in every life. */
  servesAt(port: number): void {
    this.#port = port;
  }

  wish(mark: string): ServerWish {
    const { store, effects, notices } = this;
    const place =
      this.#door === "tcp"
        ? ({ kind: "tcp", port: this.#port } as const)
        : ({ kind: "socket", path: join(this.dir, "door", "s") } as const);
    return { store, effects, notices, place, mark, token: TOKEN, workspace: join(this.dir, "workspace") };
  }

  async connect(chooser: SeededChooser): Promise<Clients> {
    const chance = { fraction: () => chooser.below(1_000) / 1_000, key: () => this.#newKey() };
    const path = join(this.dir, "door", "s");
    const door: ConnectOptions =
      this.#door === "tcp" ? { url: `http://127.0.0.1:${this.#port}`, token: TOKEN } : { socket: path };
    const common = { ...door, clock: hurriedClock, chance };
    const plain: Fetch = this.#door === "tcp" ? (url, init) => globalThis.fetch(url, init) : socketFetch(path);
    const bare = { ...common, patienceMs: 0, fetch: withoutKey(plain) };
    return {
      patient: await connectBelay(common),
      hasty: await connectBelay({ ...common, patienceMs: 0 }),
      bare: await connectBelay(bare),
    };
  }

  /** How long the log is of each session that has a live run. Read beside the server, which hears nothing of it. */
  headsOfBusy(): ReadonlyMap<number, number> {
    if (!existsSync(this.store)) return new Map();
    const database = openReadOnly(this.store);
    try {
      const rows = database.prepare(
        `SELECT session, (SELECT MAX(seq + count) FROM event WHERE event.session = run.session) AS head
           FROM run WHERE phase = 'live'`,
      );
      return new Map(rows.all().map(({ session, head }) => [Number(session), Number(head)]));
    } finally {
      database.close();
    }
  }

  /** What the file says, read without a server. */
  async read(): Promise<{ readonly logs: Logs; readonly rows: ReadonlyMap<RunId, RunRow> }> {
    const store = await openSqliteStore({ file: this.store });
    try {
      const logs = new Map<SessionId, readonly Recorded[]>();
      const rows = new Map<RunId, RunRow>();
      for (const { id } of await store.sessions({ after: undefined, limit: PAGE_ROWS_MAX })) {
        logs.set(id, await listOf(readAll(store, id, 0)));
        for (let before = Number.MAX_SAFE_INTEGER; ; ) {
          const page = await store.runs(id, { before, limit: PAGE_ROWS_MAX });
          for (const row of page) rows.set(row.id, row);
          before = page.at(-1)?.acceptedAt ?? 0;
          if (page.length < PAGE_ROWS_MAX) break;
        }
      }
      return { logs, rows };
    } finally {
      await store.close();
    }
  }
}

async function listOf<T>(from: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const one of from) all.push(one);
  return all;
}

/** A client always sends keys. Others do not. */
function withoutKey(plain: Fetch): Fetch {
  return (url, init) => {
    const { "idempotency-key": _, ...headers } = init.headers;
    return plain(url, { ...init, headers });
  };
}

/** The lines of a file that may not be there. */
export function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  } catch {
    return [];
  }
}
