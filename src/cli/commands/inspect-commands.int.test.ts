// The commands that only look, as a user types them, against the real server.
import { realpathSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CliFixture, said } from "../../../test/fixtures/cli-server.ts";
import { EXIT_CODE, EXIT_SIGNAL } from "../shared/exit-code.ts";

// Programs are started, several in a test, and how long that takes is up to how busy the machine is.
vi.setConfig({ testTimeout: 40_000 });

const USAGE = { inputTokens: 3, outputTokens: 4, estimated: false };

let stage: CliFixture;

beforeEach(async () => {
  stage = await CliFixture.open();
});

afterEach(() => stage.close());

test("ps has runs, calls, questions and what waits, in one table without tabs", async () => {
  const { id, turn } = await stage.live();
  const question = await stage.asks(turn, {});
  const queued = stage.session.prompt("later\nand more");
  await queued.accepted;
  const { code, out } = await stage.type("ps");
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^${id} +run +running +\\d+s `, "m"));
  expect(out).toMatch(new RegExp(`^call_\\S+\\.1 +write_file +running +\\d+s +approval ${question} `, "m"));
  expect(out).toMatch(new RegExp(`^${queued.id} +later and more +queued `, "m"));
  for (const odd of ["\t", "\u001b"]) expect(out).not.toContain(odd);
  const json = await stage.json("ps");
  expect(json.value).toMatchObject({ sessions: [{ sessionId: stage.session.id, live: { runId: id } }] });
});

test("sessions, runs and explain tell what there is", async () => {
  const { id, turn } = await stage.live();
  turn.complete("done");
  await (await stage.belay.run(id)).outcome;
  const session = stage.session.id;
  expect((await stage.type("sessions")).out).toMatch(new RegExp(`^${session} +open .* a title$`, "m"));
  expect((await stage.json("sessions")).value).toMatchObject({ sessions: [{ id: session }], next: null });
  expect((await stage.type("runs")).out).toMatch(new RegExp(`^${id} +settled +completed `, "m"));
  expect((await stage.json("runs", "ses")).value).toMatchObject({ runs: [{ id, outcome: { kind: "completed" } }] });
  expect((await stage.type("explain", id)).out).toContain(`${session}  Idle. A cancel would change nothing.`);
  expect((await stage.type("sessions", "--limit", "1")).err).toContain(`belay sessions --before ${session}`);
  expect((await stage.type("runs", "ses_none")).code).toBe(EXIT_CODE.not_found);
});

test("show has a run with its answer, and one call", async () => {
  const { id, turn } = await stage.live("how many?");
  await turn.given.call("count", { of: "sheep" }, () => 42);
  turn.complete({ text: "The answer\nis 42.", model: { provider: "acme", id: "acme-1" }, usage: USAGE });
  await (await stage.belay.run(id)).outcome;
  const { code, out } = await stage.type("show", id);
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^${id}  completed$`, "m"));
  expect(out).toMatch(/^ {2}prompt +how many\?$/m);
  expect(out).toMatch(/^ {2}model +acme acme-1: 1 turn, 3 tokens in, 4 out$/m);
  expect(out).toMatch(/^ {2}call +call_\S+ count: completed$/m);
  expect(out).toMatch(/\n\nThe answer\nis 42\.\n$/);
  expect((await stage.json("show", id)).value).toMatchObject({ id, text: "The answer\nis 42.", turns: 1 });
  const call = await stage.type("show", `call_${id.slice(4)}.1`);
  expect(call.out).toMatch(/count: completed\n[\s\S]* input +\{"of":"sheep"\}\n +result +42\n/);
  expect((await stage.type("show", "run_none")).code).toBe(EXIT_CODE.not_found);
  const gone = await stage.type("cancel", "--session", stage.session.id, "toolu_1");
  expect(gone.code).toBe(EXIT_CODE.not_found);
});

test("sessions and runs begin with the newest, in pages", async () => {
  const { id } = await stage.belay.createSession({ id: "ses_new" });
  const run = stage.belay.prompt("newest");
  await run.accepted;
  const ids = [run.sessionId, id, stage.session.id];
  const listed = async (...words: readonly string[]): Promise<readonly string[]> => {
    const { value } = await stage.json("sessions", ...words);
    return (value as { readonly sessions: readonly { readonly id: string }[] }).sessions.map((one) => one.id);
  };
  expect(await listed()).toEqual(ids);
  expect(await listed("--limit", "1")).toEqual(ids.slice(0, 1));
  expect(await listed("--before", "ses_new")).toEqual(ids.slice(2));
  expect(await listed("--after", "ses_new")).toEqual(ids.slice(0, 1));
  expect((await stage.type("sessions", "--after", id, "--before", id)).code).toBe(EXIT_CODE.invalid);
  expect((await stage.json("runs")).value).toMatchObject({ runs: [{ id: run.id }] });
});

test("sessions shows where each works, if any has a directory of its own", async () => {
  const cwd = realpathSync(process.cwd());
  expect((await stage.type("sessions")).out).not.toContain("DIRECTORY");
  const { id } = await stage.belay.createSession({ title: "there", cwd });
  const { out } = await stage.type("sessions");
  expect(out).toMatch(/EVENTS +DIRECTORY +TITLE$/m);
  expect(out).toMatch(new RegExp(`^${stage.session.id} .* - +a title$`, "m"));
  expect(out).toMatch(new RegExp(`^${id} .* ${cwd} +there$`, "m"));
  expect((await stage.json("sessions")).value).toMatchObject({ sessions: [{ id, cwd }, {}] });
});

test("words of a model cannot steer the terminal of whoever looks", async () => {
  const { turn } = await stage.live();
  void turn.given.call("evil\u001b]0;title\u0007\u202e\nrm -rf", {}, () => new Promise(() => {}));
  for await (const event of stage.session.events()) if (event.type === "call.requested") break;
  for (const words of [["ps"], ["explain", "ses"]]) {
    const { code, out } = await stage.type(...words);
    expect(code).toBe(0);
    expect(out).toContain("evil rm -rf");
    for (const odd of ["\u001b", "\u0007", "\u202e"]) expect(out).not.toContain(odd);
  }
});

test("logs of a log that is not kept any more ends, and says what is gone", async () => {
  let [id, head, kept] = ["", 0, 0];
  // Up to a snapshot, so until there is one at the end of the log.
  while (kept <= head) {
    const live = await stage.live();
    live.turn.complete("done");
    await (await stage.belay.run(live.id)).outcome;
    id = live.id;
    head = (await stage.session.row()).head;
    kept = (await stage.session.trim(head + 1)).kept;
  }
  for (const target of [id, stage.session.id]) {
    const { code, err } = await stage.type("logs", target);
    expect({ code, err }).toEqual({ code: 0, err: `belay: events up to position ${head} are not kept any more\n` });
  }
});

test.each([
  [["--detach", "--timeout", "1000"], "--timeout cannot be kept with --detach"],
  [["--session", "ses_x", "--title", "T"], "'--title <text>' cannot be used with option '--session <id>'"],
])("run %j is refused instead of dropping half of it", async (words, advice) => {
  const { code, err } = await stage.type("run", ...words, "hello");
  expect(code).toBe(EXIT_CODE.invalid);
  expect(err).toContain(advice);
});

describe("follow", () => {
  test("a run from its acceptance to its outcome: facts as lines, words as text", async () => {
    const { id, turn } = await stage.live("hello");
    let spoke = false;
    const { code, out, err } = await said(stage.start("follow", id), (text) => {
      if (spoke && text.includes("one")) turn.complete();
      if (spoke || !text.includes("turn.requested")) return;
      spoke = true;
      turn.say("one \u001b[31mtwo");
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/ +\d+ {2}\S+ {2}run\.accepted +run_\S+ hello/);
    expect(out).toContain("\none two\n");
    expect(out.trimEnd()).toMatch(/run\.settled +run_\S+ completed$/);
  });

  test("Ctrl-C leaves, cancels nothing, and says so; --json is lines of JSON", async () => {
    const { id } = await stage.live();
    const child = stage.start("follow", stage.session.id, "--after", "0", "--json");
    // Once: whoever presses again is not kept waiting, and told nothing.
    let pressed = false;
    const { code, out, err } = await said(child, (text) => {
      if (pressed || !text.includes("run.started")) return;
      pressed = child.kill("SIGINT");
    });
    expect(code).toBe(EXIT_SIGNAL.SIGINT);
    expect(err).toContain("Nothing was cancelled");
    const lines = out.trimEnd().split("\n");
    const types = lines.map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types.slice(0, 3)).toEqual(["session.created", "run.accepted", "run.started"]);
    expect((await stage.session.explain()).live).toMatchObject({ runId: id, phase: "running" });
  });

  test("without an id every session is followed", async () => {
    const child = stage.start("follow");
    let asked = false;
    const done = said(child, (text) => {
      if (!asked && text.includes("run.accepted")) asked = child.kill("SIGTERM");
    });
    await expect.poll(() => stage.handler.streams, { timeout: 8_000 }).toBe(1);
    await stage.session.prompt("now").accepted;
    const { code, out } = await done;
    expect(code).toBe(EXIT_SIGNAL.SIGTERM);
    expect(out).toMatch(new RegExp(`^${stage.session.id} +2 .*run\\.accepted +run_\\S+ now$`, "m"));
  });
});
