// The store on one SQLite file, for one server. The database runs in two threads, so that neither a commit nor a
// large page blocks the main thread, which encodes, decodes and wakes waiters.
//
// Invariants
// 1. All appends to the file come through here, so cached heads are exact. After an append with an unknown result,
//    its session's head is removed from the cache.
// 2. The file belongs to this store alone while it is open, so leases are kept in memory: a worker cannot outlive the
//    process. Their epochs come from the file, and rise over restarts.
import { ControlError } from "../../../core/errors.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId, WorkerId } from "../../../core/model/ids.ts";
import type { CallRow, IdsAsked, IdsFound, ProcessRow, RunRow, SessionsAsked } from "../../../core/model/rows.ts";
import type { StoreTrimmed, Upkeep } from "../../../core/model/upkeep.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Appended, Batch, Claim, Loaded, Page, SessionRow, Store } from "../../../ports/store.ts";
import { decodeLane } from "../../../wire/lane.ts";
import { Growth } from "../../growth.ts";
import { Leases } from "../../leases.ts";
import { callRow, eventsOf, processRow, runRow, sessionRow } from "../decode.ts";
import { TakenOver } from "../file/ownership.ts";
import { EPOCH_BLOCK, HEADS_MAX } from "../limits.ts";
import type { ReaderVerbs } from "../log-reader.ts";
import { RecentEntries } from "../recent-entries.ts";
import type { WriterVerbs } from "./message.ts";
import { Outbox } from "./outbox.ts";
import { type Start, Thread } from "./thread.ts";

interface Opening {
  /** The file's canonical path. */
  readonly file: string;
  readonly clock: Pick<Clock, "elapsed">;
  /** Starts its threads. Default: real threads. */
  readonly start?: Start;
}

/** Opens the file. Throws a ControlError if it is in use, damaged, of a newer version, or not a Belay store. */
export async function openThreadedStore({ file, clock, start }: Opening): Promise<Store> {
  const writer = new Thread<WriterVerbs>("writer", { file }, start);
  try {
    const epoch = await writer.request("open", null);
    const reader = new Thread<ReaderVerbs>("reader", { file }, start);
    return new ThreadedStore({ file, writer, reader, epoch, clock });
  } catch (error) {
    await writer.end();
    throw error;
  }
}

interface Parts {
  readonly file: string;
  readonly writer: Thread<WriterVerbs>;
  readonly reader: Thread<ReaderVerbs>;
  readonly epoch: number;
  readonly clock: Pick<Clock, "elapsed">;
}

class ThreadedStore implements Store {
  readonly workers = "one";
  readonly #file: string;
  readonly #writer: Thread<WriterVerbs>;
  readonly #reader: Thread<ReaderVerbs>;
  readonly #outbox: Outbox;
  readonly #growth = new Growth();
  readonly #clock: Pick<Clock, "elapsed">;
  readonly #leases: Leases;
  readonly #heads = new RecentEntries<SessionId, Seq>(HEADS_MAX);
  #epoch: number;
  #epochEnd: number;
  #closing: Promise<void> | undefined;
  /** Another program has opened the file: this store may not write any more. */
  #isTakenOver = false;

  constructor({ file, writer, reader, epoch, clock }: Parts) {
    this.#file = file;
    this.#writer = writer;
    this.#reader = reader;
    this.#outbox = new Outbox(writer, (session, head) => this.#note(session, head));
    this.#clock = clock;
    this.#leases = new Leases(clock);
    this.#epoch = epoch;
    this.#epochEnd = epoch + EPOCH_BLOCK;
  }

  async append(batch: Batch): Promise<Appended> {
    this.#requireOpen();
    if (this.#leases.fences(batch.session, batch.epoch)) return { kind: "fenced" };
    const appended = await this.#outbox.add(batch, this.#clock.elapsed());
    if (appended.kind === "fenced") this.#isTakenOver = true;
    return appended;
  }

  async load(session: SessionId): Promise<Loaded | undefined> {
    const loaded = await this.#ask("load", session);
    if (loaded === null) return undefined;
    const { head, after, rows, memos } = loaded;
    const snapshot = loaded.snapshot === null ? undefined : decodeLane(loaded.snapshot);
    return { snapshot, events: eventsOf(rows, after, head - after), head, memos };
  }

  async read(session: SessionId, { after, limit }: { readonly after: Seq; readonly limit: number }): Promise<Page> {
    const page = await this.#ask("read", { session, after, limit });
    if (page === null) return { events: [] };
    const gapTo = page.keptFrom - 1;
    if (after >= gapTo) return { events: eventsOf(page.rows, after, limit) };
    return { events: eventsOf(page.rows, gapTo, limit), gapTo };
  }

  async grown(session: SessionId, after: Seq, signal: AbortSignal): Promise<void> {
    this.#requireOpen();
    const known = this.#heads.get(session);
    if (known !== undefined) return known > after ? undefined : this.#growth.wait(session, after, signal);
    // Registered before the head is read, so that no append can be missed in between.
    const grown = this.#growth.wait(session, after, signal);
    void this.#readHead(session);
    await grown;
  }

  async run(by: RunId | { readonly session: SessionId; readonly key: string }): Promise<RunRow | undefined> {
    const run = typeof by === "string" ? await this.#ask("run", by) : await this.#ask("key", by);
    return run === null ? undefined : runRow(run);
  }

  async call(id: CallId): Promise<CallRow | undefined> {
    const call = await this.#ask("call", id);
    return call === null ? undefined : callRow(call);
  }

  async process(id: ProcessId): Promise<ProcessRow | undefined> {
    const found = await this.#ask("process", id);
    return found === null ? undefined : processRow(found);
  }

  async processes(
    session: SessionId,
    { before, limit }: { readonly before: Seq; readonly limit: number },
  ): Promise<readonly ProcessRow[]> {
    return (await this.#ask("processes", { session, before, limit })).map(processRow);
  }

  async runs(
    session: SessionId,
    { before, limit }: { readonly before: Seq; readonly limit: number },
  ): Promise<readonly RunRow[]> {
    return (await this.#ask("runs", { session, before, limit })).map(runRow);
  }

  async session(id: SessionId): Promise<SessionRow | undefined> {
    const found = await this.#ask("session", id);
    return found === null ? undefined : sessionRow(found);
  }

  async sessions(query: SessionsAsked): Promise<readonly SessionRow[]> {
    return (await this.#ask("sessions", query)).map(sessionRow);
  }

  ids(query: IdsAsked): Promise<IdsFound> {
    return this.#ask("ids", query);
  }

  async unattended(limit: number): Promise<readonly SessionId[]> {
    const found: SessionId[] = [];
    let after = 0;
    while (found.length < limit) {
      const page = await this.#ask("open", { after, limit });
      for (const { id } of page) if (found.length < limit && !this.#leases.attended(id)) found.push(id);
      if (page.length < limit) break;
      after = page.at(-1)?.number ?? after;
    }
    return found;
  }

  async claim(session: SessionId, worker: WorkerId, ttlMs: number): Promise<Claim> {
    this.#requireOpen();
    if (this.#isTakenOver) throw new TakenOver(this.#file);
    if (this.#epoch + 1 >= this.#epochEnd) await this.#takeEpochs();
    return this.#leases.claim(session, worker, ttlMs, () => {
      this.#epoch += 1;
      return this.#epoch;
    });
  }

  async renew(worker: WorkerId, ttlMs: number): Promise<readonly SessionId[]> {
    this.#requireOpen();
    return this.#leases.renew(worker, ttlMs);
  }

  async release(session: SessionId, worker: WorkerId): Promise<void> {
    this.#requireOpen();
    this.#leases.release(session, worker);
  }

  async trim(session: SessionId, before: Seq): Promise<StoreTrimmed> {
    this.#requireOpen();
    this.#outbox.flush();
    return this.#writer.request("trim", { session, before });
  }

  readonly upkeep: Upkeep = {
    remove: (session) => this.#remove(session),
    survey: (page) => this.#ask("survey", page),
    within: (session, limits) => this.#ask("within", { session, ...limits }),
    usage: () => this.#ask("usage", null),
    reclaim: async () => {
      this.#requireOpen();
      return this.#writer.request("reclaim", null);
    },
  };

  async #remove(session: SessionId): ReturnType<Upkeep["remove"]> {
    this.#requireOpen();
    this.#outbox.flush();
    const step = await this.#writer.request("remove", session);
    // Its followers wake, and find that the session is gone.
    if (step === "done") this.#note(session, undefined);
    return step;
  }

  async ready(): Promise<void> {
    this.#requireOpen();
    await this.#writer.request("ready", null);
  }

  readonly inPlace = async (): Promise<void> => {
    this.#requireOpen();
    await this.#writer.request("look", null);
  };

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#outbox.flush();
    this.#growth.end();
    // The reader first: the last connection to close moves the write-ahead log into the file.
    await this.#reader.end();
    try {
      if (this.#writer.started) await this.#writer.request("close", null);
    } finally {
      await this.#writer.end();
    }
  }

  /** Reads the head of a session for its waiters; if that fails, wakes them. */
  async #readHead(session: SessionId): Promise<void> {
    try {
      this.#note(session, await this.#ask("head", session));
    } catch {
      this.#note(session, undefined);
    }
  }

  #note(session: SessionId, head: Seq | undefined): void {
    if (head === undefined) {
      // Wakes the waiters, because the log may have grown. They read it again, and get the error if it lasts.
      this.#heads.delete(session);
      this.#growth.note(session, Number.POSITIVE_INFINITY);
      return;
    }
    // A response of the reader may arrive after that of a later append.
    if (head <= (this.#heads.get(session) ?? -1)) return;
    this.#heads.set(session, head);
    this.#growth.note(session, head);
  }

  async #takeEpochs(): Promise<void> {
    // Concurrent claims each get a separate block, all higher than those before.
    this.#epoch = await this.#writer.request("epochs", null);
    this.#epochEnd = this.#epoch + EPOCH_BLOCK;
  }

  async #ask<V extends keyof ReaderVerbs>(verb: V, ask: ReaderVerbs[V]["ask"]): Promise<ReaderVerbs[V]["answer"]> {
    this.#requireOpen();
    return this.#reader.request(verb, ask);
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new ControlError("unavailable", "The store is closed.");
  }
}
