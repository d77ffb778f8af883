// Messages between the store and its two threads.
//
// Appends are sent as flat lists of text and numbers: cloning nested objects between threads would cost more than
// writing them to disk. Only this file knows the layout.
import type { ControlCode, ControlError } from "../../../core/errors.ts";
import type { Seq, SessionId } from "../../../core/model/ids.ts";
import type { MemoChange } from "../../../core/model/memo.ts";
import { type RowChange, rowChange, type StoreKnows } from "../../../core/model/rows.ts";
import type { StoreTrimmed } from "../../../core/model/upkeep.ts";
import type { Batch } from "../../../ports/store.ts";
import { encodeEvents, encodeOutcome } from "../../../wire/event.ts";
import { encodeLane } from "../../../wire/lane.ts";

export type Cell = string | number | null;

/** The requests to the writer, and its responses. */
export interface WriterVerbs {
  /** Reserves a block of epochs. Returns the epoch before the first one. */
  open: { readonly ask: null; readonly answer: number };
  epochs: { readonly ask: null; readonly answer: number };
  append: { readonly ask: readonly Cell[]; readonly answer: readonly Cell[] };
  trim: { readonly ask: { readonly session: SessionId; readonly before: Seq }; readonly answer: StoreTrimmed };
  remove: { readonly ask: SessionId; readonly answer: "more" | "done" | "absent" | "busy" };
  reclaim: { readonly ask: null; readonly answer: number };
  ready: { readonly ask: null; readonly answer: null };
  look: { readonly ask: null; readonly answer: null };
  close: { readonly ask: null; readonly answer: null };
}

/** One request; `verb` is a key of the thread's verbs. */
export interface Ask {
  readonly id: number;
  readonly verb: string;
  readonly ask: unknown;
}

export type Reply =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly code: ControlCode; readonly message: string; readonly hint: string };

/** Errors cannot be posted unchanged, so their fields are. */
export const refusal = (id: number, { code, message, hint }: ControlError): Reply => ({ id, code, message, hint });

/** A row change: the index of its type, and up to four values. */
export interface PackedChange {
  readonly type: RowChange["type"];
  readonly id: string | null;
  readonly at: number | null;
  readonly first: string | null;
  readonly second: string | null;
}

export interface PackedBatch {
  readonly session: SessionId;
  readonly expected: Seq;
  readonly count: number;
  readonly at: number;
  readonly data: string;
  readonly snapshot: string | null;
  readonly changes: readonly PackedChange[];
  readonly memos: readonly MemoChange[];
  /** Names of memos. */
  readonly unless: readonly string[];
  /** When the memos were sent, by a monotonic clock. */
  readonly elapsed: number;
}

const CHANGE_TYPES: readonly RowChange["type"][] = [
  "create-session",
  "close-session",
  "insert-run",
  "start-run",
  "settle-run",
  "insert-call",
  "insert-process",
  "settle-process",
];
const BATCH_CELLS = 8;
const CHANGE_CELLS = 5;

/** `elapsed`: the current time of a monotonic clock. */
export function packBatch(cells: Cell[], batch: Batch, elapsed = 0): void {
  const { session, expected, events, at, snapshot, memos, unless } = batch;
  const lane = snapshot === undefined ? null : encodeLane(snapshot, expected + events.length);
  cells.push(session, expected, events.length, Math.trunc(at), encodeEvents(events), lane, 0);
  const counter = cells.length - 1;
  cells.push(memos === undefined && unless === undefined ? null : JSON.stringify([memos ?? [], unless ?? [], elapsed]));
  let changes = 0;
  let seq = expected;
  for (const event of events) {
    seq += 1;
    const change = rowChange(event, seq);
    if (change === undefined) continue;
    packChange(cells, change);
    changes += 1;
  }
  cells[counter] = changes;
}

export function unpackBatches(cells: readonly Cell[]): readonly PackedBatch[] {
  const batches: PackedBatch[] = [];
  for (let start = 0; start < cells.length; ) {
    const changes = cells[start + 6] as number;
    const [memos, unless, elapsed] = memosIn(cells[start + 7] as string | null);
    batches.push({
      session: cells[start] as SessionId,
      expected: cells[start + 1] as number,
      count: cells[start + 2] as number,
      at: cells[start + 3] as number,
      data: cells[start + 4] as string,
      snapshot: cells[start + 5] as string | null,
      changes: unpackChanges(cells, start + BATCH_CELLS, changes),
      memos,
      unless,
      elapsed,
    });
    start += BATCH_CELLS + changes * CHANGE_CELLS;
  }
  return batches;
}

type PackedMemos = readonly [readonly MemoChange[], readonly string[], number];

const NO_MEMOS: PackedMemos = [[], [], 0];
const memosIn = (cell: string | null): PackedMemos => (cell === null ? NO_MEMOS : (JSON.parse(cell) as PackedMemos));

function packChange(cells: Cell[], change: RowChange): void {
  const type = CHANGE_TYPES.indexOf(change.type);
  switch (change.type) {
    case "create-session":
      cells.push(type, null, null, change.title ?? null, change.cwd ?? null);
      return;
    case "close-session":
      cells.push(type, null, null, null, null);
      return;
    case "insert-run":
      cells.push(type, change.id, change.acceptedAt, change.key ?? null, change.content ?? null);
      return;
    case "start-run":
      cells.push(type, change.id, null, null, null);
      return;
    case "insert-process":
      cells.push(type, change.id, change.requestedAt, null, null);
      return;
    case "settle-run":
    case "settle-process":
    case "insert-call":
      cells.push(type, change.id, change.settledAt, encodeOutcome(change.outcome), null);
      return;
  }
}

function unpackChanges(cells: readonly Cell[], start: number, count: number): readonly PackedChange[] {
  const changes: PackedChange[] = [];
  for (let at = start; at < start + count * CHANGE_CELLS; at += CHANGE_CELLS) {
    changes.push({
      type: CHANGE_TYPES[cells[at] as number] as RowChange["type"],
      id: cells[at + 1] as string | null,
      at: cells[at + 2] as number | null,
      first: cells[at + 3] as string | null,
      second: cells[at + 4] as string | null,
    });
  }
  return changes;
}

/** The result of one append. */
export type Written =
  | { readonly kind: "fenced" }
  | { readonly kind: "appended" | "moved"; readonly head: Seq }
  | StoreKnows
  | { readonly kind: "failed"; readonly code: ControlCode; readonly message: string };

const WRITTEN_CELLS = 3;

export function packWritten(cells: Cell[], written: Written): void {
  if (written.kind === "failed") cells.push(written.code, null, written.message);
  else if (written.kind === "fenced") cells.push(written.kind, null, null);
  else if (isKnown(written.kind)) cells.push(written.kind, null, JSON.stringify(written));
  else if ("head" in written) cells.push(written.kind, written.head, null);
}

export function unpackWritten(cells: readonly Cell[], index: number): Written {
  const start = index * WRITTEN_CELLS;
  const kind = cells[start];
  if (kind === "appended" || kind === "moved") return { kind, head: cells[start + 1] as number };
  if (kind === "fenced") return { kind };
  if (isKnown(kind)) return JSON.parse(cells[start + 2] as string) as StoreKnows;
  return { kind: "failed", code: kind as ControlCode, message: cells[start + 2] as string };
}

const isKnown = (kind: Cell | undefined): boolean => kind === "taken" || kind === "recalled" || kind === "crowded";
