// The writer's thread: takes what has gathered while it was busy, and writes it with one commit.
//
// Invariants
// 1. Requests are carried out in the order in which they were made.
// 2. An answer is posted after the commit that it speaks of.
// 3. If the file could not be opened, every request tries again and says why it failed.
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { Bug } from "../../core/bug.ts";
import { toControlError } from "../../core/control-error.ts";
import type { SessionId } from "../../core/ids.ts";
import { GROUP_BATCHES_MAX } from "./limits.ts";
import { type Ask, type Cell, type PackedBatch, packWritten, type Reply, unpackBatches } from "./message.ts";
import { type OpenFile, openFile } from "./open-file.ts";
import { troubleError } from "./trouble.ts";

const { file } = workerData as { readonly file: string };
const port = parentPort;
if (port === null) throw new Bug("the writer runs in a thread of its own");

let opened: OpenFile | undefined;

port.on("message", (first: Ask) => {
  for (let next: Ask | undefined = first; next !== undefined; ) next = work(next);
});

/** Carries out one request, or a group of appends. Answers a request that was taken from the queue and not done. */
function work(first: Ask): Ask | undefined {
  if (first.verb !== "append") {
    port?.postMessage([attempt(first)]);
    return take();
  }
  const group = [first];
  const batches = [...unpackBatches(first.ask as readonly Cell[])];
  const counts = [batches.length];
  let next = take();
  while (next?.verb === "append" && batches.length < GROUP_BATCHES_MAX) {
    const more = unpackBatches(next.ask as readonly Cell[]);
    group.push(next);
    batches.push(...more);
    counts.push(more.length);
    next = take();
  }
  port?.postMessage(append(group, batches, counts));
  return next;
}

function take(): Ask | undefined {
  return port === null ? undefined : (receiveMessageOnPort(port)?.message as Ask | undefined);
}

function append(group: readonly Ask[], batches: readonly PackedBatch[], counts: readonly number[]): readonly Reply[] {
  let done = 0;
  try {
    const written = theFile().writer.append(batches);
    return group.map(({ id }, index): Reply => {
      const answer: Cell[] = [];
      for (const one of written.slice(done, done + (counts[index] ?? 0))) packWritten(answer, one);
      done += counts[index] ?? 0;
      return { id, answer };
    });
  } catch (error) {
    return group.map(({ id }) => failed(id, error));
  }
}

function attempt({ id, verb, ask }: Ask): Reply {
  try {
    return { id, answer: carryOut(verb, ask) };
  } catch (error) {
    return failed(id, error);
  }
}

function carryOut(verb: string, ask: unknown): unknown {
  switch (verb) {
    case "open":
      return theFile().epochs();
    case "epochs":
      return theFile().epochs();
    case "trim": {
      const { session, before } = ask as { readonly session: SessionId; readonly before: number };
      return theFile().writer.trim(session, before);
    }
    case "ready":
      theFile().writer.probe();
      return null;
    case "close":
      opened?.close();
      opened = undefined;
      return null;
    default:
      throw new Bug(`the writer knows no ${verb}`);
  }
}

function theFile(): OpenFile {
  opened ??= openFile(file);
  return opened;
}

function failed(id: number, error: unknown): Reply {
  const { code, message } = error instanceof Bug ? toControlError(error) : troubleError(error, file);
  return { id, code, message };
}
