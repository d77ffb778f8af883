// The demo agent in a real Belay: its tools have real effects, and stops end them.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Delta } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { Question } from "../core/model/question.ts";
import type { Notice } from "../ports/hooks.ts";
import { descendantsOf, type Identity, identityOf, isStill } from "../process/tree/proc.ts";
import { type Belay, openBelay } from "../sdk/belay.ts";
import type { BelayOptions } from "../sdk/belay-options.ts";
import type { RunHandle } from "../sdk/run.ts";
import type { Session } from "../sdk/session.ts";
import { demoAgent } from "./demo-agent.ts";

const PACE = { wordMs: 1, stepMs: 5, stubbornMs: 120 };

interface DemoSession {
  readonly belay: Belay;
  readonly session: Session;
  readonly folder: string;
  readonly notices: Notice[];
}

async function openDemo(more: Pick<BelayOptions, "directories"> = {}): Promise<DemoSession> {
  const above = mkdtempSync(join(tmpdir(), "belay-demo-test-"));
  const folder = join(above, "files");
  const notices: Notice[] = [];
  const agent = demoAgent({ folder, pace: PACE });
  mkdirSync(folder);
  const belay = await openBelay({
    ...{ agent, store: ":memory:", graceMs: 60, ...more },
    onNotice: (notice) => notices.push(notice),
    processes: { workspace: folder },
  });
  onTestFinished(async () => {
    await belay.close({ mode: "cancel" });
    rmSync(above, { recursive: true, force: true });
  });
  return { belay, session: await belay.createSession(), folder, notices };
}

/** The first result of `pick` for the events of a run. */
async function first<T>(run: RunHandle, pick: (event: Recorded | Delta) => T | undefined): Promise<T> {
  for await (const event of run) {
    const found = event.type === "gap" ? undefined : pick(event);
    if (found !== undefined) return found;
  }
  throw new Error("The run ended without it.");
}

async function asked(session: Session): Promise<Question> {
  await expect.poll(async () => (await session.questions()).length).toBe(1);
  const [question] = await session.questions();
  return question ?? expect.unreachable();
}

const callOf =
  (name: string) =>
  (event: Recorded | Delta): `call_${string}` | undefined =>
    event.type === "call.requested" && event.name === name ? event.callId : undefined;

/** The next process of a session and its descendants, once all of them have started. */
async function spawned(session: Session): Promise<readonly Identity[]> {
  for await (const event of session.events()) {
    if (event.type !== "process.started") continue;
    const handle = await session.processes.get(event.processId);
    for await (const { text } of handle.follow()) if (text.includes("asleep")) break;
    await expect.poll(() => sleepersBelow(event.pid).length).toBe(2);
    return [event.pid, ...descendantsOf(event.pid)].flatMap((pid) => identityOf(pid) ?? []);
  }
  return expect.unreachable();
}

const sleepersBelow = (pid: number): readonly number[] =>
  descendantsOf(pid).filter((one) => readFileSync(`/proc/${one}/comm`, "utf8").trim() === "sleep");

const survivors = (tree: readonly Identity[]): readonly Identity[] => tree.filter((one) => isStill(one));

test("list and read: the answer has the content of real files, and the label of a demo", async () => {
  const { session, folder } = await openDemo();
  const run = session.prompt("list the files and read welcome.txt");
  const text = await run.text({ all: true });
  expect(text.startsWith("(demo)")).toBe(true);
  expect(text).toContain("welcome.txt");
  expect(text).toContain("belongs to the demo agent");
  expect(readdirSync(folder)).toEqual(["welcome.txt"]);
});

test("write: the file is written only after the approval; a denied call names who denied it", async () => {
  const { belay, session, folder } = await openDemo();
  const denied = session.prompt("write plan.txt");
  await belay.questions.deny((await asked(session)).id, { by: "bob", note: "not today" });
  expect(await denied.text()).toContain("write_file was not carried out: denied by bob: not today.");
  const allowed = session.prompt("write plan.txt");
  const question = await asked(session);
  expect(question.about).toMatchObject({ kind: "approval", name: "write_file", input: { name: "plan.txt" } });
  expect(() => readFileSync(join(folder, "plan.txt"))).toThrow("ENOENT");
  await belay.questions.allow(question.id);
  expect(await allowed.outcome).toEqual({ kind: "completed" });
  expect(readFileSync(join(folder, "plan.txt"), "utf8")).toContain("demo");
  const settled = await first(allowed, (event) => (event.type === "call.settled" ? event : undefined));
  expect(settled.changes).toEqual(["plan.txt"]);
});

test("count: reports progress; a stopped call keeps its partial result, and its sibling continues", async () => {
  const { belay, session, folder } = await openDemo();
  const run = session.prompt("count to 9999 and count to 3");
  const endless = await first(run, (event) =>
    event.type === "progress" && JSON.stringify(event.data).includes("9999") ? event.callId : undefined,
  );
  const receipt = await belay.cancel(endless, { reason: { kind: "user", by: "alice", note: "too far" } });
  expect(receipt).toMatchObject({ kind: "stopping", ended: { outcome: { kind: "cancelled" } } });
  const text = await run.text({ all: true });
  expect(text).toMatch(/stopped by alice: too far\. All I have of it: \{"counted":\d+,"of":9999\}\./);
  expect(text).toContain("It had changed count-to-9999.txt.");
  expect(text).toContain('count_slowly is done: {"counted":3}.');
  expect(text).toContain("I was reminded");
  expect(readFileSync(join(folder, "count-to-3.txt"), "utf8")).toBe("3\n");
});

test("G19: spawn: no process of the tree is left when the call was stopped, although they ignore SIGTERM", async () => {
  const { belay, session } = await openDemo();
  const run = session.prompt("spawn");
  const tree = await spawned(session);
  const receipt = await belay.cancel(await first(run, callOf("run_command")), { reason: "enough" });
  expect(receipt).toMatchObject({ ended: { kind: "settled", outcome: { kind: "cancelled" } } });
  expect(survivors(tree)).toEqual([]);
  expect(await run.text({ all: true })).toContain("run_command was stopped by the user: enough.");
});

test("spawn: a cancel of the session ends the process trees", async () => {
  const { session } = await openDemo();
  const run = session.prompt("spawn and spawn");
  const tree = await spawned(session);
  await session.cancel({ waitMs: 5_000 });
  expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  expect(survivors(tree)).toEqual([]);
});

test("build: in a session with its own directory the command runs there, not in the demo's folder", async () => {
  const { belay, folder } = await openDemo({ directories: "any" });
  const project = join(realpathSync(join(folder, "..")), "project");
  mkdirSync(project);
  const session = await belay.createSession({ cwd: project });
  expect(await session.prompt("build").text()).toMatch(/start_build is done: it runs in the background/);
});

test("build: after the end of its run the build reports back by itself, once", async () => {
  const { session } = await openDemo();
  const run = session.prompt("build");
  expect(await run.text({ all: true })).toMatch(/start_build is done: it runs in the background as proc_\S+\.1\./);
  for await (const event of session.events()) {
    if (event.type === "turn.settled" && event.runId !== run.id) {
      expect(event.text).toMatch(
        /^\(demo\) Background report: proc_\S+ ended by itself with exit code 0 after [\d.]+ s\. Its last line: 40/,
      );
      break;
    }
  }
  expect(await session.processes.list()).toEqual([]);
});

test("spawn: the tool refuses every command but its own", async () => {
  const above = mkdtempSync(join(tmpdir(), "belay-demo-test-"));
  const belay = await openBelay({
    agent: demoAgent({ folder: join(above, "files"), pace: PACE }),
    store: ":memory:",
    hooks: { beforeCall: () => ({ kind: "allow", input: { command: "touch ../hacked" } }) },
  });
  onTestFinished(async () => {
    await belay.close({ mode: "cancel" });
    rmSync(above, { recursive: true, force: true });
  });
  const run = (await belay.createSession()).prompt("spawn");
  expect(await run.text({ all: true })).toContain("The demo runs only this command");
  expect(readdirSync(above)).not.toContain("hacked");
});

test("ask: the answer reaches the model", async () => {
  const { belay, session } = await openDemo();
  const run = session.prompt("ask me something");
  const { id, about } = await asked(session);
  expect(about).toMatchObject({ kind: "question", options: ["red", "green", "blue"] });
  await belay.questions.answer(id, "green");
  expect(await run.text({ all: true })).toContain('ask_colour is done: {"colour":"green"}.');
});

test("stubborn: the call is abandoned and named, and its late result is dropped", async () => {
  const { session, notices } = await openDemo();
  const run = session.prompt("be stubborn");
  await first(run, callOf("stubborn"));
  await run.cancel({ reason: "enough" });
  expect(await run.outcome).toMatchObject({ kind: "cancelled", abandoned: ["stubborn"] });
  await expect.poll(() => notices).toMatchObject([{ type: "late", work: "stubborn" }]);
});

test("everything: calls run in parallel, a steer is taken in, and one stop ends them all", async () => {
  const { belay, session } = await openDemo();
  const run = session.prompt("list and count to 2");
  await first(run, callOf("count_slowly"));
  session.prompt("read welcome.txt", { delivery: "steer" });
  expect(await run.text({ all: true })).toMatch(/You added “read welcome\.txt”, and I got it\. I call read_file\./);
  const all = session.prompt("everything");
  const starting = spawned(session);
  await expect.poll(async () => (await session.questions()).length).toBe(2);
  expect((await session.explain()).live?.calls.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["count_slowly", "run_command", "write_file", "ask_colour"]),
  );
  const tree = await starting;
  await belay.cancel(session.id, { waitMs: 5_000 });
  expect(await all.outcome).toMatchObject({ kind: "cancelled" });
  expect(await session.questions()).toEqual([]);
  expect(survivors(tree)).toEqual([]);
});

test("names that lead out of the folder are refused", async () => {
  const { DemoFolder } = await import("./demo-folder.ts");
  const above = mkdtempSync(join(tmpdir(), "belay-demo-test-"));
  onTestFinished(() => rmSync(above, { recursive: true, force: true }));
  const folder = new DemoFolder(join(above, "files"));
  for (const name of ["../a.txt", "/etc/passwd", ".hidden", "a/b.txt", "", "a\u0000.txt"]) {
    await expect(folder.write(name, "x")).rejects.toThrow("plain name");
  }
  await expect(folder.read("none.txt")).rejects.toThrow("There are: welcome.txt.");
});
