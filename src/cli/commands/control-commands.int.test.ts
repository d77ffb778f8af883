// The commands that stop and steer, as a user types them, against the real server.
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CliFixture } from "../../../test/fixtures/cli-server.ts";
import { EXIT_CODE } from "../shared/exit-code.ts";

// Programs are started, several in a test, and how long that takes is up to how busy the machine is.
vi.setConfig({ testTimeout: 40_000 });

let stage: CliFixture;

beforeEach(async () => {
  stage = await CliFixture.open();
});

afterEach(() => stage.close());

describe("cancel", () => {
  test("a live run, by the beginning of its id: stopped, waited for, and said how it ended", async () => {
    const { id, turn } = await stage.live();
    turn.given.signal.addEventListener("abort", () => turn.complete());
    const { code, out, err } = await stage.type("cancel", id.slice(0, 20), "--reason", "wrong\u001b[31m one", "--wait");
    expect(err).toBe("");
    expect(out).toContain(`${id}  stopping: recorded at position`);
    expect(out).toContain("ended: cancelled (wrong one)");
    expect(code).toBe(0);
    expect(await (await stage.belay.run(id)).outcome).toMatchObject({ kind: "cancelled" });
  });

  test("a run that had ended: too late, says how, and is in order", async () => {
    const { id, turn } = await stage.live();
    turn.complete("done");
    await (await stage.belay.run(id)).outcome;
    const { code, out } = await stage.type("cancel", id);
    expect(out).toContain("settled: too late, it had already ended: completed");
    expect(code).toBe(0);
  });

  test("what nobody knows is 3; what cannot be an id, too; the beginning of several is 2 and names them", async () => {
    const unknown = await stage.json("cancel", "run_nothing");
    expect(unknown).toEqual({ code: EXIT_CODE.not_found, value: { kind: "unknown" } });
    expect((await stage.type("cancel", "nonsense!")).code).toBe(EXIT_CODE.not_found);
    const { id } = await stage.live();
    const queued = stage.session.prompt("later");
    await queued.accepted;
    const both = await stage.type("cancel", "run_");
    expect(both.code).toBe(EXIT_CODE.invalid);
    expect(both.err).toContain(id);
    expect(both.err).toContain(queued.id);
    expect(both.out).toBe("");
    expect(await (await stage.belay.run(id)).row()).toMatchObject({ phase: "live" });
  });

  test("ses_build never stops ses_build-2, and their prefix is ambiguous though only one is busy", async () => {
    await stage.belay.createSession({ id: "ses_build" });
    const busy = await stage.belay.createSession({ id: "ses_build-2" });
    const run = busy.prompt("work");
    await stage.agent.nextTurn();
    const idle = await stage.type("cancel", "ses_build");
    expect(idle).toMatchObject({ code: 0, out: expect.stringContaining("ses_build  idle") });
    for (const words of [["cancel"], ["explain"], ["run", "hello", "--session"]]) {
      const { code, out, err } = await stage.type(...words, "ses_buil");
      expect({ code, out }).toEqual({ code: EXIT_CODE.invalid, out: "" });
      expect(err).toMatch(/ses_build {2}session\n.*ses_build-2 {2}session/);
    }
    const sent = await stage.json("run", "--detach", "--session", "ses_build", "hello");
    expect(sent.value).toMatchObject({ sessionId: "ses_build" });
    expect((await run.row()).phase).toBe("live");
  });

  test("a session, with everything it covers", async () => {
    const { id, turn } = await stage.live();
    turn.given.signal.addEventListener("abort", () => turn.complete());
    const queued = stage.session.prompt("later");
    await queued.accepted;
    const { code, out } = await stage.type("cancel", stage.session.id, "--wait", "5000");
    expect(code).toBe(0);
    expect(out).toContain(`${stage.session.id}  stopping: it covers 2 runs`);
    expect(out).toContain(`${id}  stopping`);
    expect(out).toContain(`${queued.id}  withdrawn`);
    const again = await stage.json("cancel", stage.session.id);
    expect(again).toEqual({ code: 0, value: { kind: "idle", runs: [] } });
  });

  test("run --no-config goes to the server: it asks for no agent", async () => {
    expect(await stage.json("run", "--no-config", "--detach", "hello")).toMatchObject({ code: 0 });
    const other = await stage.type("run", "--config", "x.json", "--detach", "hello");
    expect(other).toMatchObject({ code: EXIT_CODE.invalid, err: expect.stringContaining("--config is for runs") });
  });

  test("one call: its run goes on, and without --no-remind the model is reminded", async () => {
    const { id, turn } = await stage.live();
    const results = ["one", "two"].map((name) =>
      turn.given.call(name, {}, ({ signal }) => new Promise((_, stop) => signal.addEventListener("abort", stop))),
    );
    for await (const event of stage.session.events()) {
      if (event.type === "call.requested" && event.name === "two") break;
    }
    const first = await stage.type("cancel", `call_${id.slice(4)}.1`);
    expect(first.out).toContain("ended: cancelled");
    const second = await stage.json("cancel", `call_${id.slice(4)}.2`, "--no-remind");
    expect(second.value).toMatchObject({ kind: "stopping", ended: { kind: "settled" } });
    expect((await Promise.all(results)).map(({ kind }) => kind)).toEqual(["cancelled", "cancelled"]);
    const reminded: string[] = [];
    const { head } = await stage.session.row();
    for await (const event of stage.session.events()) {
      if (event.type === "inbox.added") reminded.push(event.item.text);
      if ("seq" in event && event.seq >= head) break;
    }
    expect(reminded).toHaveLength(1);
    expect(reminded[0]).toContain("one");
    expect((await stage.session.explain()).live?.phase).toBe("running");
  });

  test.each([
    [["--no-remind"], "--no-remind is for the cancel of a call"],
    [["--keep-background"], "--keep-background is for the cancel of a session"],
    [["--wait", "soon"], '--wait cannot be "soon"'],
    [["--wait", "999999999"], "from 0 to 600000 ms"],
  ])("%j does not fit a run, and nothing is cancelled", async (words, advice) => {
    const { id } = await stage.live();
    const { code, err } = await stage.type("cancel", id, ...words);
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain(advice);
    expect((await stage.session.explain()).live?.phase).toBe("running");
  });
});

describe("stop-all", () => {
  test("without a terminal it asks nobody and stops every session", async () => {
    const { id } = await stage.live();
    const other = await stage.belay.createSession();
    const run = other.prompt("also");
    await stage.agent.nextTurn();
    const { code, out, err } = await stage.type("stop-all", "--reason", "fire");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    for (const stopped of [stage.session.id, id, other.id, run.id]) expect(out).toContain(stopped);
    expect((await stage.session.explain()).live).toMatchObject({ phase: "stopping", reason: { note: "fire" } });
  });

  test("with nothing going on it says so, and that is in order", async () => {
    const { code, out } = await stage.type("stop-all");
    expect({ code, out }).toEqual({ code: 0, out: "Nothing was going on, so nothing was changed.\n" });
    expect(await stage.json("stop-all")).toEqual({ code: 0, value: { sessions: [] } });
  });
});

describe("queue", () => {
  test("lists, edits and moves what waits", async () => {
    await stage.live();
    const one = stage.session.prompt("first");
    const two = stage.session.prompt("second");
    await two.accepted;
    expect((await stage.type("queue", stage.session.id)).out).toMatch(new RegExp(`^1 +${one.id} +queue +first$`, "m"));
    const edited = await stage.type("queue", "ses", "--edit", two.id, "another text");
    expect(edited.out).toContain(`${two.id}  changed: recorded`);
    expect((await stage.type("queue", "ses", "--move", two.id, "front")).code).toBe(0);
    const listed = await stage.json("queue", "ses");
    expect(listed.value).toMatchObject({ queue: [{ runId: two.id, prompt: { text: "another text" } }, {}] });
    expect((await stage.json("queue", "ses", "--move", one.id, two.id)).value).toMatchObject({ kind: "changed" });
    expect((await stage.session.queue.list()).map(({ runId }) => runId)).toEqual([one.id, two.id]);
  });

  test("steers and withdraws what waits, and says so if it is too late", async () => {
    const { id } = await stage.live();
    const one = stage.session.prompt("first");
    const two = stage.session.prompt("second");
    await two.accepted;
    expect((await stage.json("queue", "ses", "--steer", two.id)).value).toMatchObject({ kind: "changed" });
    const gone = await stage.type("queue", "ses", "--withdraw", one.id, "--reason", "no");
    expect(gone).toMatchObject({ code: 0, err: "" });
    expect(await one.outcome).toMatchObject({ kind: "cancelled", reason: { note: "no" } });
    const late = await stage.type("queue", "ses", "--withdraw", id);
    expect(late.code).toBe(EXIT_CODE.conflict);
    expect(late.out).toContain("started: too late");
  });

  test("--withdraw of a prefix that the live run has too is 2, and names both", async () => {
    const { id } = await stage.live();
    const queued = stage.session.prompt("later");
    await queued.accepted;
    const { code, out, err } = await stage.type("queue", "ses", "--withdraw", "run_");
    expect({ code, out }).toEqual({ code: EXIT_CODE.invalid, out: "" });
    expect(err).toContain(id);
    expect(err).toContain(queued.id);
    expect(await stage.session.queue.list()).toHaveLength(1);
    const byPrefix = await stage.type("queue", "ses", "--withdraw", queued.id.slice(0, -1));
    expect(byPrefix.out).toContain(`${queued.id}  changed`);
  });

  test.each([
    [["--edit", "run_1"], "--edit needs the new text"],
    [["--move", "run_1"], "--move needs a place"],
    [["--withdraw", "run_1", "--steer", "run_2"], "One change at a time"],
    [["stray"], 'queue takes no "stray" here'],
    [["--move", "front", "run_1"], "The run comes first, as in: belay queue SESSION --move RUN front"],
  ])("%j is refused with advice", async (words, advice) => {
    const { code, err } = await stage.type("queue", "ses", ...words);
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain(advice);
  });
});

describe("approve, deny, answer", () => {
  const HOSTILE = { path: "a\u202etxt.exe", text: "line\nnext \u200b\u001b[2J end" };

  test("what is approved is shown to the byte, with everything an eye would miss written out", async () => {
    const { turn } = await stage.live();
    const question = await stage.asks(turn, HOSTILE);
    expect((await stage.type("approve")).out).toContain(question);
    const unseen = await stage.type("approve", question);
    expect(unseen.code).toBe(EXIT_CODE.invalid);
    expect(unseen.out).toContain('"path": "a\\u{202e}txt.exe"');
    expect(unseen.out).toContain('"text": "line\\nnext \\u{200b}\\u001b[2J end"');
    for (const hidden of ["\u202e", "\u200b", "\u001b"]) expect(unseen.out).not.toContain(hidden);
    expect(await stage.session.questions()).toHaveLength(1);
    const digest = /--digest (\S+)\./.exec(unseen.err)?.[1] ?? "";
    expect((await stage.type("approve", question, "--digest", `${digest}x`)).code).toBe(EXIT_CODE.conflict);
    const allowed = await stage.json("approve", question.slice(0, 12), "--digest", digest);
    expect(allowed).toEqual({ code: 0, value: { kind: "recorded", questionId: question } });
    expect(await stage.settledCall()).toMatchObject({ kind: "completed" });
  });

  test("a no needs no terminal; the model is told why, and by whom", async () => {
    const { turn } = await stage.live();
    const question = await stage.asks(turn, HOSTILE);
    const { code, out } = await stage.type("deny", question, "--note", "not here", "--by", "alice");
    expect(code).toBe(0);
    expect(out.trimEnd().split("\n").at(-1)).toContain(`${question}  recorded: your answer is in the log`);
    expect(await stage.settledCall()).toMatchObject({ kind: "failed", code: "denied" });
    const again = await stage.type("deny", question);
    expect(again.code).toBe(EXIT_CODE.not_found);
    expect(again.err).toContain("or not any more");
  });

  test("a question is answered with a text or with JSON, and only if it is one", async () => {
    const { turn } = await stage.live();
    const asked = turn.given.ask({ text: "Which colour?", options: ["red", "blue"] });
    const next = turn.given.ask({ text: "How many?" });
    const ids: string[] = [];
    for await (const event of stage.session.events()) {
      if (event.type === "question.asked") ids.push(event.questionId);
      if (ids.length === 2) break;
    }
    const [first = "", second = ""] = ids;
    expect((await stage.type("approve", first)).err).toContain(`belay answer ${first} VALUE`);
    expect((await stage.type("answer", first, "blue")).code).toBe(0);
    expect(await asked).toMatchObject({ kind: "answered", value: "blue" });
    expect((await stage.type("answer", second, "{", "--as-json")).code).toBe(EXIT_CODE.invalid);
    expect((await stage.json("answer", second, '{"copies":2}', "--as-json")).code).toBe(0);
    expect(await next).toMatchObject({ kind: "answered", value: { copies: 2 } });
  });
});

test("completion asks for ids quickly, and is silent if nobody answers", async () => {
  const { id } = await stage.live();
  const { code, out } = await stage.type("complete-ids", "run", "session");
  expect(code).toBe(0);
  expect(out.trimEnd().split("\n").toSorted()).toEqual([id, stage.session.id].toSorted());
  const none = await stage.type("complete-ids", "--socket", join(stage.folder, "none"));
  expect(none).toEqual({ code: 0, out: "", err: "" });
});
