// Loaded before a server, and into each of its threads: kills the whole process at the given point, and loads the given
// modules with a known mistake. Stands between the store and SQLite, so that production code has no switches.
import { appendFileSync, readFileSync } from "node:fs";
import { ServerResponse } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync, StatementSync } from "node:sqlite";
import workerThreads, { isMainThread, parentPort, type Worker, type WorkerOptions } from "node:worker_threads";
import { loadEdited } from "../mistakes/load-edited.ts";
import type { EditedModule } from "../mistakes/mistake.ts";
import { HITS_VARIABLE, type Kind, kindsOf, MODULES_VARIABLE, type Place, POINT_VARIABLE } from "./points.ts";

/** `settle:before-commit#2` is the second time that point is passed. */
const [point = "", nth = "1"] = (process.env[POINT_VARIABLE] ?? "").split("#");
let left = Number(nth);

function pass(name: string): void {
  if (name !== point) return;
  left -= 1;
  if (left > 0) return;
  appendFileSync(process.env[HITS_VARIABLE] ?? "/dev/null", `${point}\n`);
  // The kernel ends every thread before this one gets back from the call.
  process.kill(process.pid, "SIGKILL");
}

const passAll = (kinds: Iterable<Kind>, place: Place): void => {
  for (const kind of kinds) pass(`${kind}:${place}`);
};

interface Asked {
  readonly id: number;
  readonly verb: string;
  readonly ask: unknown;
}

function kindsIn({ verb, ask }: Asked): ReadonlySet<Kind> {
  if (verb !== "append" || !Array.isArray(ask)) return new Set();
  return kindsOf(ask.filter((cell): cell is string => typeof cell === "string"));
}

/** The thread that has the sockets. */
function standInMain(): void {
  const { Worker } = workerThreads;
  workerThreads.Worker = new Proxy(Worker, {
    construct: (target, [entry, options]: [URL, WorkerOptions]) =>
      isStoreThread(entry)
        ? overheard(new target(entry, { ...options, execArgv: ["--import", import.meta.url] }))
        : new target(entry, options),
  });
  syncBuiltinESMExports();
  const { end } = ServerResponse.prototype;
  ServerResponse.prototype.end = function (this: ServerResponse, ...args: unknown[]): ServerResponse {
    const { method, url = "" } = this.req;
    const kind = method === "POST" && /\/runs$/.test(url) ? "accept" : /\/cancel$/.test(url) ? "cancel" : undefined;
    if (kind !== undefined) this.once("finish", () => pass(`${kind}:answered`));
    return Reflect.apply(end, this, args) as ServerResponse;
  } as typeof end;
}

/** Other threads (the one that scans processes, the one that watches the loop) have messages of their own. */
const isStoreThread = (entry: URL): boolean => entry.pathname.includes("/store/sqlite/thread/");

/** Knows what the answers of a thread are about. */
function overheard(worker: Worker): Worker {
  const asked = new Map<number, ReadonlySet<Kind>>();
  const [post, on] = [worker.postMessage.bind(worker), worker.on.bind(worker)];
  const hear = (listener: (replies: unknown) => void) => (replies: readonly { readonly id: number }[]) => {
    for (const { id } of replies) {
      passAll(asked.get(id) ?? [], "before-answer");
      asked.delete(id);
    }
    listener(replies);
  };
  return Object.assign(worker, {
    postMessage: (message: Asked) => {
      const kinds = kindsIn(message);
      if (kinds.size > 0) asked.set(message.id, kinds);
      post(message);
    },
    on: (name: string, listener: (told: unknown) => void) => on(name, name === "message" ? hear(listener) : listener),
  });
}

/** The writer's thread: what it has been asked for and has not answered yet. */
function standInWriter(): void {
  const port = parentPort;
  if (port === null) return;
  let kinds = new Set<Kind>();
  const note = (asked: Asked | undefined): void => {
    if (asked !== undefined) for (const kind of kindsIn(asked)) kinds.add(kind);
  };
  const { receiveMessageOnPort } = workerThreads;
  workerThreads.receiveMessageOnPort = (from) => {
    const received = receiveMessageOnPort(from);
    note(received?.message as Asked | undefined);
    return received;
  };
  syncBuiltinESMExports();
  const on = port.on.bind(port);
  const hear = (name: string, listener: (message: Asked) => void): unknown =>
    on(name as "message", (message: Asked) => {
      note(message);
      listener(message);
    });
  const post = port.postMessage.bind(port);
  Object.assign(port, {
    on: hear,
    postMessage: (message: unknown) => {
      kinds = new Set();
      post(message);
    },
  });
  const { run, get, all } = StatementSync.prototype;
  StatementSync.prototype.run = function (this: StatementSync, ...args: never[]) {
    const sql = this.sourceSQL;
    if (sql === "BEGIN IMMEDIATE") passAll(kinds, "before-begin");
    if (sql === "COMMIT") passAll(kinds, "before-commit");
    const done = Reflect.apply(run, this, args) as ReturnType<typeof run>;
    if (/^(INSERT|UPDATE|DELETE)/.test(sql)) passAll(kinds, "after-row");
    if (sql === "COMMIT") passAll(kinds, "after-commit");
    return done;
  };
  // Whichever way the row is asked for.
  StatementSync.prototype.get = function (this: StatementSync, ...args: never[]) {
    const found = Reflect.apply(get, this, args) as ReturnType<typeof get>;
    passEpochs(this);
    return found;
  };
  StatementSync.prototype.all = function (this: StatementSync, ...args: never[]) {
    const found = Reflect.apply(all, this, args) as ReturnType<typeof all>;
    passEpochs(this);
    return found;
  };
  standInMigration();
}

function passEpochs({ sourceSQL }: StatementSync): void {
  if (sourceSQL.startsWith("UPDATE store SET epoch")) pass("open:after-epochs");
}

function standInMigration(): void {
  const { exec } = DatabaseSync.prototype;
  let migrating = false;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
    const really = (text: string): void => Reflect.apply(exec, this, [text]);
    if (sql === "BEGIN IMMEDIATE") {
      migrating = true;
      pass("migrate:before-begin");
      really(sql);
      pass("migrate:after-begin");
    } else if (migrating && sql.endsWith("COMMIT")) {
      migrating = false;
      pass("migrate:before-commit");
      really(sql);
      pass("migrate:after-commit");
    } else if (migrating) {
      for (const statement of statementsOf(sql)) {
        really(statement);
        pass("migrate:after-statement");
      }
    } else if (sql.startsWith("PRAGMA wal_checkpoint")) {
      pass("open:before-checkpoint");
      really(sql);
      pass("open:after-checkpoint");
    } else really(sql);
  };
}

/** One by one. A trigger has semicolons of its own. */
function statementsOf(sql: string): readonly string[] {
  return sql
    .split(/(?<=;)\n(?!END;)/)
    .reduce<string[]>((all, text) => {
      const open = all.at(-1);
      if (open !== undefined && /\bBEGIN\b(?![\s\S]*\bEND;)/.test(open)) all[all.length - 1] = `${open}\n${text}`;
      else all.push(text);
      return all;
    }, [])
    .filter((text) => text.trim() !== "");
}

const modules = process.env[MODULES_VARIABLE] ?? "";
// The edge: written by the loop.
if (modules !== "") loadEdited(JSON.parse(readFileSync(modules, "utf8")) as readonly EditedModule[]);
if (isMainThread) standInMain();
else standInWriter();
