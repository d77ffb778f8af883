// The scenes of the demo about processes: a tree that does not listen, and is stopped; and one that reports back.
import type { Recorded } from "../../../core/model/event.ts";
import type { ProcessId } from "../../../core/model/ids.ts";
import type { ProcessInfo, Tier } from "../../../ports/spawner.ts";
import { descendantsOf, type Identity, identityOf, isStill } from "../../../process/tree/proc.ts";
import type { RunHandle } from "../../../sdk/run.ts";
import type { Session } from "../../../sdk/session.ts";
import { count, sayReceipt } from "../../shared/format/format-outcome.ts";
import { printHeading, printLine, printMeaning } from "../../shared/terminal/terminal.ts";
import { ask, ended, type Stage } from "./demo-stage.ts";

/** What the shell says when everybody is there. */
const READY = "asleep";

export async function stopsTree(stage: Stage, session: Session): Promise<void> {
  printHeading("6. Stop a run with a tree of processes that does not listen");
  const run = ask(session, "spawn");
  const info = await started(stage, session, run);
  if (info === undefined) return notHere(stage, run);
  const tree = identities(info.pid);
  printLine("belay", `run_command is process ${info.pid}, which is alive with ${count(tree.length - 1, "descendant")}`);
  printLine("belay", `they are held by tier "${info.tier}" (${info.mechanism})`);
  await stage.pause();
  printLine("you", "stop the run, and wait for its end");
  const receipt = await stage.until(run.cancel({ reason: "not needed any more", waitMs: 5_000 }));
  printLine("belay", sayReceipt(receipt));
  const left = tree.filter((one) => isStill(one)).length;
  printLine("belay", `process ${info.pid} is ${left === 0 ? "gone, with all of them" : `not gone: ${left} are left`}`);
  await ended(stage, run);
  printMeaning(`They ignore SIGTERM, and one of them has left its process group. ${HELD[info.tier ?? "group"]}`);
}

/** How far each tier goes, and where it ends. */
const HELD: Readonly<Record<Tier, string>> = {
  namespace: "They live in a namespace of their own, which nobody can leave: the kernel ends it as a whole.",
  cgroup: "They live in a control group of their own: the kernel ends all of it on one write.",
  anchor:
    "A small process inherits whoever is orphaned and ends them one by one. Only one that kills it would get away.",
  group: "Here they are found by their group and a mark only: one that sheds both would get away. See: belay doctor",
};

export async function reportsBack(stage: Stage, session: Session): Promise<void> {
  printHeading("7. A process in the background reports back by itself");
  const run = ask(session, "build");
  const { asOf } = await stage.until(session.explain());
  await ended(stage, run);
  const id = await stage.until(buildOf(session, run));
  if (id === undefined) return;
  printLine("belay", "nothing is asked, and nothing is said; the build goes on");
  const told = await stage.eventIn(session, asOf, (event) => (isTold(event, id) ? event.runId : undefined));
  printLine("belay", "the build has ended, and a run was begun to tell the agent");
  if (told !== run.id) await ended(stage, await stage.until(stage.belay.run(told)));
  printMeaning(
    "Its result was kept until a turn had heard it: once, also if the server had been restarted in between.",
  );
}

type Taken = Extract<Recorded, { type: "inbox.taken" }>;

const isTold = (event: Recorded, id: ProcessId): event is Taken =>
  event.type === "inbox.taken" && event.items.some(({ data }) => JSON.stringify(data ?? null).includes(`"${id}"`));

/** The process that the run has left going on. Undefined: none could be started here. */
async function buildOf(session: Session, run: RunHandle): Promise<ProcessId | undefined> {
  const [newest] = await session.processes.history({ limit: 1 });
  if (newest !== undefined && (await run.text()).includes(newest.id)) return newest.id;
  printMeaning("No process could be started here, so none reports back. To see why: belay doctor");
  return undefined;
}

/** The process of a run, once all of it is there. Undefined: the run has ended without one. */
async function started(stage: Stage, session: Session, run: RunHandle): Promise<Running | undefined> {
  const { seq } = await stage.until(run.accepted);
  const id = await stage.eventIn(session, seq, (event) => {
    if (event.type === "process.started") return event.processId;
    return event.type === "run.settled" && event.runId === run.id ? "none" : undefined;
  });
  if (id === "none") return undefined;
  const handle = await stage.until(session.processes.get(id));
  for await (const { text } of handle.follow()) if (text.includes(READY)) break;
  const { info } = handle;
  return info?.pid === undefined ? undefined : { ...info, pid: info.pid };
}

type Running = ProcessInfo & { readonly pid: number };

const identities = (pid: number): readonly Identity[] =>
  [pid, ...descendantsOf(pid)].flatMap((one) => identityOf(one) ?? []);

async function notHere(stage: Stage, run: RunHandle): Promise<void> {
  await ended(stage, run);
  printMeaning("No process could be started here, so there is none to stop. To see why: belay doctor");
}
