// The steps of the demo about processes: a tree that ignores signals is stopped, and a background process reports back.
import type { Recorded } from "../../../core/model/event.ts";
import type { ProcessId } from "../../../core/model/ids.ts";
import type { ProcessInfo, Tier } from "../../../ports/spawner.ts";
import { descendantsOf, type Identity, identityOf, isStill } from "../../../process/tree/proc.ts";
import type { RunHandle } from "../../../sdk/run.ts";
import type { Session } from "../../../sdk/session.ts";
import { count, formatReceipt } from "../../shared/format/format-outcome.ts";
import { printHeading, printLine, printMeaning } from "../../shared/terminal/terminal.ts";
import { ask, type DemoContext, ended } from "./demo-context.ts";

/** The output of the shell once all processes have started. */
const READY = "asleep";

export async function stopsTree(context: DemoContext, session: Session): Promise<void> {
  printHeading("6. Stop a run with a tree of processes that does not listen");
  const run = ask(session, "spawn");
  const info = await started(context, session, run);
  if (info === undefined) return notHere(context, run);
  const tree = identities(info.pid);
  printLine("belay", `run_command is process ${info.pid}, which is alive with ${count(tree.length - 1, "descendant")}`);
  printLine("belay", `they are held by tier "${info.tier}" (${info.mechanism})`);
  await context.pause();
  printLine("you", "stop the run, and wait for its end");
  const receipt = await context.until(run.cancel({ reason: "not needed any more", waitMs: 5_000 }));
  printLine("belay", formatReceipt(receipt));
  const left = tree.filter((one) => isStill(one)).length;
  printLine("belay", `process ${info.pid} is ${left === 0 ? "gone, with all of them" : `not gone: ${left} are left`}`);
  await ended(context, run);
  printMeaning(`They ignore SIGTERM, and one of them has left its process group. ${HELD[info.tier ?? "group"]}`);
}

/** What each tier guarantees, and its limit. */
const HELD: Readonly<Record<Tier, string>> = {
  namespace: "They run in their own PID namespace, which no process can leave: the kernel ends it as a whole.",
  cgroup: "They run in their own control group: the kernel ends all of it on one write.",
  anchor: "A small process inherits orphans and ends them one by one. Only a process that kills it would escape.",
  group:
    "Here they are found only by their group and a mark: a process that sheds both would escape. See: belay doctor",
};

export async function reportsBack(context: DemoContext, session: Session): Promise<void> {
  printHeading("7. A process in the background reports back by itself");
  const run = ask(session, "build");
  const { asOf } = await context.until(session.explain());
  await ended(context, run);
  const id = await context.until(buildOf(session, run));
  if (id === undefined) return;
  printLine("belay", "the session is idle; the build continues");
  const woken = await context.eventIn(session, asOf, (event) => (hasResult(event, id) ? event.runId : undefined));
  printLine("belay", "the build has ended, and a run was started with its result");
  if (woken !== run.id) await ended(context, await context.until(context.belay.run(woken)));
  printMeaning("Its result is delivered to one turn, exactly once, even if the server had been restarted in between.");
}

type Taken = Extract<Recorded, { type: "inbox.taken" }>;

const hasResult = (event: Recorded, id: ProcessId): event is Taken =>
  event.type === "inbox.taken" && event.items.some(({ data }) => JSON.stringify(data ?? null).includes(`"${id}"`));

/** The background process that the run has started. Undefined: none could be started here. */
async function buildOf(session: Session, run: RunHandle): Promise<ProcessId | undefined> {
  const [newest] = await session.processes.history({ limit: 1 });
  if (newest !== undefined && (await run.text()).includes(newest.id)) return newest.id;
  printMeaning("No process could be started here, so none reports back. To see why: belay doctor");
  return undefined;
}

/** The process of a run, once its whole tree has started. Undefined: the run has ended without one. */
async function started(context: DemoContext, session: Session, run: RunHandle): Promise<Running | undefined> {
  const { seq } = await context.until(run.accepted);
  const id = await context.eventIn(session, seq, (event) => {
    if (event.type === "process.started") return event.processId;
    return event.type === "run.settled" && event.runId === run.id ? "none" : undefined;
  });
  if (id === "none") return undefined;
  const handle = await context.until(session.processes.get(id));
  for await (const { text } of handle.follow()) if (text.includes(READY)) break;
  const { info } = handle;
  return info?.pid === undefined ? undefined : { ...info, pid: info.pid };
}

type Running = ProcessInfo & { readonly pid: number };

const identities = (pid: number): readonly Identity[] =>
  [pid, ...descendantsOf(pid)].flatMap((one) => identityOf(one) ?? []);

async function notHere(context: DemoContext, run: RunHandle): Promise<void> {
  await ended(context, run);
  printMeaning("No process could be started here, so there is none to stop. To see why: belay doctor");
}
