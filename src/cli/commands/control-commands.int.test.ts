// The commands that stop and steer, as a user types them, on a real server.
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CliFixture } from "../../../test/fixtures/cli-server.ts";
import { EXIT_CODE } from "../shared/exit-code.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

let cli: CliFixture;

beforeEach(async () => {
  cli = await CliFixture.open();
});

afterEach(() => cli.close());

describe("cancel", () => {
  test("stops a live run by a prefix of its id, waits for it, and prints its outcome", async () => {
    const { id, turn } = await cli.live();
    turn.given.signal.addEventListener("abort", () => turn.complete());
    const { code, out, err } = await cli.type("cancel", id.slice(0, 20), "--reason", "wrong\u001b[31m one", "--wait");
    expect(err).toBe("");
    expect(out).toContain(`${id}  stopping: recorded at position`);
    expect(out).toContain("ended: cancelled (wrong one)");
    expect(code).toBe(0);
    expect(await (await cli.belay.run(id)).outcome).toMatchObject({ kind: "cancelled" });
  });

  test("of a run that had ended prints its outcome and exits 0", async () => {
    const { id, turn } = await cli.live();
    turn.complete("done");
    await (await cli.belay.run(id)).outcome;
    const { code, out } = await cli.type("cancel", id);
    expect(out).toContain("settled: too late, it had already ended: completed");
    expect(code).toBe(0);
  });

  test("exits 3 for an unknown or malformed id, and 2 for an ambiguous prefix, which it names", async () => {
    const unknown = await cli.json("cancel", "run_nothing");
    expect(unknown).toEqual({ code: EXIT_CODE.not_found, value: { kind: "unknown" } });
    expect((await cli.type("cancel", "nonsense!")).code).toBe(EXIT_CODE.not_found);
    const { id } = await cli.live();
    const queued = cli.session.prompt("later");
    await queued.accepted;
    const both = await cli.type("cancel", "run_");
    expect(both.code).toBe(EXIT_CODE.invalid);
    expect(both.err).toContain(id);
    expect(both.err).toContain(queued.id);
    expect(both.out).toBe("");
    expect(await (await cli.belay.run(id)).row()).toMatchObject({ phase: "live" });
  });

  test("ses_build never stops ses_build-2, and their prefix is ambiguous though only one is busy", async () => {
    await cli.belay.createSession({ id: "ses_build" });
    const busy = await cli.belay.createSession({ id: "ses_build-2" });
    const run = busy.prompt("work");
    await cli.agent.nextTurn();
    const idle = await cli.type("cancel", "ses_build");
    expect(idle).toMatchObject({ code: 0, out: expect.stringContaining("ses_build  idle") });
    for (const args of [["cancel"], ["explain"], ["run", "hello", "--session"]]) {
      const { code, out, err } = await cli.type(...args, "ses_buil");
      expect({ code, out }).toEqual({ code: EXIT_CODE.invalid, out: "" });
      expect(err).toMatch(/ses_build {2}session\n.*ses_build-2 {2}session/);
    }
    const sent = await cli.json("run", "--detach", "--session", "ses_build", "hello");
    expect(sent.value).toMatchObject({ sessionId: "ses_build" });
    expect((await run.row()).phase).toBe("live");
  });

  test("of a session prints a receipt for everything it covers", async () => {
    const { id, turn } = await cli.live();
    turn.given.signal.addEventListener("abort", () => turn.complete());
    const queued = cli.session.prompt("later");
    await queued.accepted;
    const { code, out } = await cli.type("cancel", cli.session.id, "--wait", "5000");
    expect(code).toBe(0);
    expect(out).toContain(`${cli.session.id}  stopping: it covers 2 runs`);
    expect(out).toContain(`${id}  stopping`);
    expect(out).toContain(`${queued.id}  withdrawn`);
    const again = await cli.json("cancel", cli.session.id);
    expect(again).toEqual({ code: 0, value: { kind: "idle", runs: [] } });
  });

  test("run --no-config goes to the server, since it does not select an agent", async () => {
    expect(await cli.json("run", "--no-config", "--detach", "hello")).toMatchObject({ code: 0 });
    const other = await cli.type("run", "--config", "x.json", "--detach", "hello");
    expect(other).toMatchObject({ code: EXIT_CODE.invalid, err: expect.stringContaining("--config is for runs") });
  });

  test("of one call leaves its run running, and reminds the model unless --no-remind is given", async () => {
    const { id, turn } = await cli.live();
    const results = ["one", "two"].map((name) =>
      turn.given.call(name, {}, ({ signal }) => new Promise((_, stop) => signal.addEventListener("abort", stop))),
    );
    for await (const event of cli.session.events()) {
      if (event.type === "call.requested" && event.name === "two") break;
    }
    const first = await cli.type("cancel", `call_${id.slice(4)}.1`);
    expect(first.out).toContain("ended: cancelled");
    const second = await cli.json("cancel", `call_${id.slice(4)}.2`, "--no-remind");
    expect(second.value).toMatchObject({ kind: "stopping", ended: { kind: "settled" } });
    expect((await Promise.all(results)).map(({ kind }) => kind)).toEqual(["cancelled", "cancelled"]);
    const reminded: string[] = [];
    const { head } = await cli.session.row();
    for await (const event of cli.session.events()) {
      if (event.type === "inbox.added") reminded.push(event.item.text);
      if ("seq" in event && event.seq >= head) break;
    }
    expect(reminded).toHaveLength(1);
    expect(reminded[0]).toContain("one");
    expect((await cli.session.explain()).live?.phase).toBe("running");
  });

  test.each([
    [["--no-remind"], "--no-remind is for the cancel of a call"],
    [["--keep-background"], "--keep-background is for the cancel of a session"],
    [["--wait", "soon"], '--wait cannot be "soon"'],
    [["--wait", "999999999"], "from 0 to 600000 ms"],
  ])("with %j, which does not apply to a run, cancels nothing", async (args, advice) => {
    const { id } = await cli.live();
    const { code, err } = await cli.type("cancel", id, ...args);
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain(advice);
    expect((await cli.session.explain()).live?.phase).toBe("running");
  });
});

describe("stop-all", () => {
  test("without a terminal stops every session without confirmation", async () => {
    const { id } = await cli.live();
    const other = await cli.belay.createSession();
    const run = other.prompt("also");
    await cli.agent.nextTurn();
    const { code, out, err } = await cli.type("stop-all", "--reason", "fire");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    for (const stopped of [cli.session.id, id, other.id, run.id]) expect(out).toContain(stopped);
    expect((await cli.session.explain()).live).toMatchObject({ phase: "stopping", reason: { note: "fire" } });
  });

  test("without running work says so, and exits 0", async () => {
    const { code, out } = await cli.type("stop-all");
    expect({ code, out }).toEqual({ code: 0, out: "Nothing was going on, so nothing was changed.\n" });
    expect(await cli.json("stop-all")).toEqual({ code: 0, value: { sessions: [] } });
  });
});

describe("queue", () => {
  test("lists, edits and moves waiting runs", async () => {
    await cli.live();
    const one = cli.session.prompt("first");
    const two = cli.session.prompt("second");
    await two.accepted;
    expect((await cli.type("queue", cli.session.id)).out).toMatch(new RegExp(`^1 +${one.id} +queue +first$`, "m"));
    const edited = await cli.type("queue", "ses", "--edit", two.id, "another text");
    expect(edited.out).toContain(`${two.id}  changed: recorded`);
    expect((await cli.type("queue", "ses", "--move", two.id, "front")).code).toBe(0);
    const listed = await cli.json("queue", "ses");
    expect(listed.value).toMatchObject({ queue: [{ runId: two.id, prompt: { text: "another text" } }, {}] });
    expect((await cli.json("queue", "ses", "--move", one.id, two.id)).value).toMatchObject({ kind: "changed" });
    expect((await cli.session.queue.list()).map(({ runId }) => runId)).toEqual([one.id, two.id]);
  });

  test("steers and withdraws waiting runs, and reports `started` if it is too late", async () => {
    const { id } = await cli.live();
    const one = cli.session.prompt("first");
    const two = cli.session.prompt("second");
    await two.accepted;
    expect((await cli.json("queue", "ses", "--steer", two.id)).value).toMatchObject({ kind: "changed" });
    const gone = await cli.type("queue", "ses", "--withdraw", one.id, "--reason", "no");
    expect(gone).toMatchObject({ code: 0, err: "" });
    expect(await one.outcome).toMatchObject({ kind: "cancelled", reason: { note: "no" } });
    const late = await cli.type("queue", "ses", "--withdraw", id);
    expect(late.code).toBe(EXIT_CODE.conflict);
    expect(late.out).toContain("started: too late");
  });

  test("--withdraw exits 2 for a prefix that the live run has too, and names both", async () => {
    const { id } = await cli.live();
    const queued = cli.session.prompt("later");
    await queued.accepted;
    const { code, out, err } = await cli.type("queue", "ses", "--withdraw", "run_");
    expect({ code, out }).toEqual({ code: EXIT_CODE.invalid, out: "" });
    expect(err).toContain(id);
    expect(err).toContain(queued.id);
    expect(await cli.session.queue.list()).toHaveLength(1);
    const byPrefix = await cli.type("queue", "ses", "--withdraw", queued.id.slice(0, -1));
    expect(byPrefix.out).toContain(`${queued.id}  changed`);
  });

  test.each([
    [["--edit", "run_1"], "--edit needs the new text"],
    [["--move", "run_1"], "--move needs a place"],
    [["--withdraw", "run_1", "--steer", "run_2"], "One change at a time"],
    [["stray"], 'queue takes no "stray" here'],
    [["--move", "front", "run_1"], "The run comes first, as in: belay queue SESSION --move RUN front"],
  ])("%j is refused with advice", async (args, advice) => {
    const { code, err } = await cli.type("queue", "ses", ...args);
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain(advice);
  });
});

describe("approve, deny, answer", () => {
  const HOSTILE = { path: "a\u202etxt.exe", text: "line\nnext \u200b\u001b[2J end" };

  test("approve shows the exact bytes, with invisible characters escaped", async () => {
    const { turn } = await cli.live();
    const question = await cli.asks(turn, HOSTILE);
    expect((await cli.type("approve")).out).toContain(question);
    const unseen = await cli.type("approve", question);
    expect(unseen.code).toBe(EXIT_CODE.invalid);
    expect(unseen.out).toContain('"path": "a\\u{202e}txt.exe"');
    expect(unseen.out).toContain('"text": "line\\nnext \\u{200b}\\u001b[2J end"');
    for (const hidden of ["\u202e", "\u200b", "\u001b"]) expect(unseen.out).not.toContain(hidden);
    expect(await cli.session.questions()).toHaveLength(1);
    const digest = /--digest (\S+)\./.exec(unseen.err)?.[1] ?? "";
    expect((await cli.type("approve", question, "--digest", `${digest}x`)).code).toBe(EXIT_CODE.conflict);
    const allowed = await cli.json("approve", question.slice(0, 12), "--digest", digest);
    expect(allowed).toEqual({ code: 0, value: { kind: "recorded", questionId: question } });
    expect(await cli.settledCall()).toMatchObject({ kind: "completed" });
  });

  test("deny works without a terminal; the model gets the reason and the name", async () => {
    const { turn } = await cli.live();
    const question = await cli.asks(turn, HOSTILE);
    const { code, out } = await cli.type("deny", question, "--note", "not here", "--by", "alice");
    expect(code).toBe(0);
    expect(out.trimEnd().split("\n").at(-1)).toContain(`${question}  recorded: your answer is in the log`);
    expect(await cli.settledCall()).toMatchObject({ kind: "failed", code: "denied" });
    const again = await cli.type("deny", question);
    expect(again.code).toBe(EXIT_CODE.not_found);
    expect(again.err).toContain("There is no open question");
  });

  test("answer sends a text or JSON, and refuses malformed JSON", async () => {
    const { turn } = await cli.live();
    const asked = turn.given.ask({ text: "Which colour?", options: ["red", "blue"] });
    const next = turn.given.ask({ text: "How many?" });
    const ids: string[] = [];
    for await (const event of cli.session.events()) {
      if (event.type === "question.asked") ids.push(event.questionId);
      if (ids.length === 2) break;
    }
    const [first = "", second = ""] = ids;
    expect((await cli.type("approve", first)).err).toContain(`belay answer ${first} VALUE`);
    expect((await cli.type("answer", first, "blue")).code).toBe(0);
    expect(await asked).toMatchObject({ kind: "answered", value: "blue" });
    expect((await cli.type("answer", second, "{", "--as-json")).code).toBe(EXIT_CODE.invalid);
    expect((await cli.json("answer", second, '{"copies":2}', "--as-json")).code).toBe(0);
    expect(await next).toMatchObject({ kind: "answered", value: { copies: 2 } });
  });
});

test("complete-ids prints live ids, and nothing if no server answers", async () => {
  const { id } = await cli.live();
  const { code, out } = await cli.type("complete-ids", "run", "session");
  expect(code).toBe(0);
  expect(out.trimEnd().split("\n").toSorted()).toEqual([id, cli.session.id].toSorted());
  const none = await cli.type("complete-ids", "--socket", join(cli.folder, "none"));
  expect(none).toEqual({ code: 0, out: "", err: "" });
});
