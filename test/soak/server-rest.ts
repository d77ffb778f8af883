// A house at rest: everything closed, everybody gone, and what it holds then.
import { request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type BelayClient, connectBelay } from "../../src/client/index.ts";
import { type Leak, type Level, leaksBetween } from "./level.ts";
import type { SoakServer } from "./server.ts";

/** How long whatever is closed may take to end: less than any stop of a run takes, faults included. */
const CLOSE_MS_MAX = 45_000;

const LOOK_MS = 250;

/** It has come to rest when this many looks in a row show the same. */
const SAME_LOOKS = 4;

/** What has to be 0 when nothing goes on. */
const GAUGES = [
  ...["belay_runs_live", "belay_sessions_waiting", "belay_processes_live"],
  ...["belay_http_streams_open", "belay_acp_connections"],
] as const;

const PAGE_ROWS = 1_000;

/** Closes what was left open, by editors that have gone without a word and by deeds that a fault has cut off. */
export async function closeAll(server: SoakServer): Promise<number> {
  const client = await connectBelay({ socket: server.note.socket });
  let open = 0;
  try {
    for await (const id of openSessions(client)) {
      open += 1;
      await client.session(id).close();
      await client.session(id).cancel({ waitMs: CLOSE_MS_MAX });
    }
  } finally {
    await client.close();
  }
  return open;
}

async function* openSessions(client: BelayClient): AsyncGenerator<string, void> {
  let after: string | undefined;
  for (;;) {
    const page = await client.sessions({ limit: PAGE_ROWS, ...(after === undefined ? {} : { after }) });
    for (const { id, phase } of page) if (phase === "open") yield id;
    after = page.at(-1)?.id;
    if (after === undefined) return;
  }
}

/**
 * `objects`: also what is on the heap, by class. That takes a snapshot, which takes several times the heap: nothing for
 * a soak that looks at how RSS goes.
 */
export type Depth = "memory" | "objects";

export interface Patience {
  readonly depth: Depth;
  /** How long it may take to come to rest. */
  readonly restMs: number;
}

/** The level at which it comes to rest for the first time. */
export async function firstRest(server: SoakServer, { depth, restMs }: Patience): Promise<Level> {
  let [last, same] = ["", 0];
  for (const until = performance.now() + restMs; performance.now() < until && same < SAME_LOOKS; ) {
    const { outside, memory, gauges } = await look(server, "memory");
    const now = JSON.stringify([outside.open, outside.descendants.length, memory.resources, gauges]);
    same = now === last ? same + 1 : 0;
    last = now;
    await pause(LOOK_MS);
  }
  return look(server, depth);
}

/** Waits until it holds no more than it did before, or for so long that it never will. */
export async function restAgain(
  server: SoakServer,
  before: Level,
  { runs, depth, restMs }: Patience & { readonly runs: number },
): Promise<{ readonly level: Level; readonly leaks: readonly Leak[] }> {
  const without = { ...before, objects: {} };
  for (const until = performance.now() + restMs; performance.now() < until; ) {
    const level = await look(server, "memory");
    if (leaksBetween(without, level, runs).length === 0) break;
    await pause(LOOK_MS);
  }
  const level = { ...(await look(server, depth)), sessions: await countOpen(server) };
  return { level, leaks: leaksBetween(before, level, runs) };
}

async function look(server: SoakServer, depth: Depth): Promise<Level> {
  const gauges = await readGauges(server);
  // First: a snapshot also clears away what a collection leaves for later.
  const objects = depth === "objects" ? await server.objects() : {};
  const memory = await server.memory();
  return { outside: server.outside(), memory, objects, gauges, sessions: 0 };
}

async function countOpen(server: SoakServer): Promise<number> {
  const client = await connectBelay({ socket: server.note.socket });
  const open = await Array.fromAsync(openSessions(client));
  await client.close();
  return open.length;
}

/** Over a connection that is closed at once, so that whoever looks is not what is seen. */
async function readGauges({ note: { socket } }: SoakServer): Promise<Readonly<Record<string, number>>> {
  const text = await new Promise<string>((resolve, reject) => {
    const asked = request({ socketPath: socket, path: "/metrics", agent: false }, (answer) => {
      Array.fromAsync(answer.setEncoding("utf8")).then((pieces) => resolve(pieces.join("")), reject);
    });
    asked.on("error", reject).end();
  });
  return Object.fromEntries(GAUGES.map((name) => [name, gaugeOf(text, name)]));
}

export function gaugeOf(text: string, name: string): number {
  const found = new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1];
  if (found === undefined) throw new Error(`/metrics has no ${name}.`);
  return Number(found);
}
