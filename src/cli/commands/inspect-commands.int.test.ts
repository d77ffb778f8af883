// The commands that only read, as a user types them, on a real server.
import { realpathSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CliFixture, said } from "../../../test/fixtures/cli-server.ts";
import { EXIT_CODE, EXIT_SIGNAL } from "../shared/exit-code.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

const USAGE = { inputTokens: 3, outputTokens: 4, estimated: false };

let cli: CliFixture;

beforeEach(async () => {
  cli = await CliFixture.open();
});

afterEach(() => cli.close());

test("ps lists runs, calls, questions and waiting runs in one table without tabs", async () => {
  const { id, turn } = await cli.live();
  const question = await cli.asks(turn, {});
  const queued = cli.session.prompt("later\nand more");
  await queued.accepted;
  const { code, out } = await cli.type("ps");
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^${id} +run +running +\\d+s `, "m"));
  expect(out).toMatch(new RegExp(`^call_\\S+\\.1 +write_file +running +\\d+s +approval ${question} `, "m"));
  expect(out).toMatch(new RegExp(`^${queued.id} +later and more +queued `, "m"));
  for (const odd of ["\t", "\u001b"]) expect(out).not.toContain(odd);
  const json = await cli.json("ps");
  expect(json.value).toMatchObject({ sessions: [{ sessionId: cli.session.id, live: { runId: id } }] });
});

test("sessions, runs and explain show a session and its run", async () => {
  const { id, turn } = await cli.live();
  turn.complete("done");
  await (await cli.belay.run(id)).outcome;
  const session = cli.session.id;
  expect((await cli.type("sessions")).out).toMatch(new RegExp(`^${session} +open .* a title$`, "m"));
  expect((await cli.json("sessions")).value).toMatchObject({ sessions: [{ id: session }], next: null });
  expect((await cli.type("runs")).out).toMatch(new RegExp(`^${id} +settled +completed `, "m"));
  expect((await cli.json("runs", "ses")).value).toMatchObject({ runs: [{ id, outcome: { kind: "completed" } }] });
  expect((await cli.type("explain", id)).out).toContain(`${session}  Idle. A cancel would change nothing.`);
  expect((await cli.type("sessions", "--limit", "1")).err).toContain(`belay sessions --before ${session}`);
  expect((await cli.type("runs", "ses_none")).code).toBe(EXIT_CODE.not_found);
});

test("show prints a run with its answer, or one call", async () => {
  const { id, turn } = await cli.live("how many?");
  await turn.given.call("count", { of: "sheep" }, () => 42);
  turn.complete({ text: "The answer\nis 42.", model: { provider: "acme", id: "acme-1" }, usage: USAGE });
  await (await cli.belay.run(id)).outcome;
  const { code, out } = await cli.type("show", id);
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^${id}  completed$`, "m"));
  expect(out).toMatch(/^ {2}prompt +how many\?$/m);
  expect(out).toMatch(/^ {2}model +acme acme-1: 1 turn, 3 tokens in, 4 out$/m);
  expect(out).toMatch(/^ {2}call +call_\S+ count: completed$/m);
  expect(out).toMatch(/\n\nThe answer\nis 42\.\n$/);
  expect((await cli.json("show", id)).value).toMatchObject({ id, text: "The answer\nis 42.", turns: 1 });
  const call = await cli.type("show", `call_${id.slice(4)}.1`);
  expect(call.out).toMatch(/count: completed\n[\s\S]* input +\{"of":"sheep"\}\n +result +42\n/);
  expect((await cli.type("show", "run_none")).code).toBe(EXIT_CODE.not_found);
  const gone = await cli.type("cancel", "--session", cli.session.id, "toolu_1");
  expect(gone.code).toBe(EXIT_CODE.not_found);
});

test("sessions and runs are listed newest first, in pages", async () => {
  const { id } = await cli.belay.createSession({ id: "ses_new" });
  const run = cli.belay.prompt("newest");
  await run.accepted;
  const ids = [run.sessionId, id, cli.session.id];
  const listed = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { value } = await cli.json("sessions", ...args);
    return (value as { readonly sessions: readonly { readonly id: string }[] }).sessions.map((one) => one.id);
  };
  expect(await listed()).toEqual(ids);
  expect(await listed("--limit", "1")).toEqual(ids.slice(0, 1));
  expect(await listed("--before", "ses_new")).toEqual(ids.slice(2));
  expect(await listed("--after", "ses_new")).toEqual(ids.slice(0, 1));
  expect((await cli.type("sessions", "--after", id, "--before", id)).code).toBe(EXIT_CODE.invalid);
  expect((await cli.json("runs")).value).toMatchObject({ runs: [{ id: run.id }] });
});

test("sessions shows the directories if any session has its own", async () => {
  const cwd = realpathSync(process.cwd());
  expect((await cli.type("sessions")).out).not.toContain("DIRECTORY");
  const { id } = await cli.belay.createSession({ title: "there", cwd });
  const { out } = await cli.type("sessions");
  expect(out).toMatch(/EVENTS +DIRECTORY +TITLE$/m);
  expect(out).toMatch(new RegExp(`^${cli.session.id} .* - +a title$`, "m"));
  expect(out).toMatch(new RegExp(`^${id} .* ${cwd} +there$`, "m"));
  expect((await cli.json("sessions")).value).toMatchObject({ sessions: [{ id, cwd }, {}] });
});

test("text of a model cannot control the terminal of the reader", async () => {
  const { turn } = await cli.live();
  void turn.given.call("evil\u001b]0;title\u0007\u202e\nrm -rf", {}, () => new Promise(() => {}));
  for await (const event of cli.session.events()) if (event.type === "call.requested") break;
  for (const args of [["ps"], ["explain", "ses"]]) {
    const { code, out } = await cli.type(...args);
    expect(code).toBe(0);
    expect(out).toContain("evil rm -rf");
    for (const odd of ["\u001b", "\u0007", "\u202e"]) expect(out).not.toContain(odd);
  }
});

test("logs of a trimmed session ends, and says which events are gone", async () => {
  let [id, head, kept] = ["", 0, 0];
  // A trim goes up to a snapshot, so this repeats until one is at the end of the log.
  while (kept <= head) {
    const live = await cli.live();
    live.turn.complete("done");
    await (await cli.belay.run(live.id)).outcome;
    id = live.id;
    head = (await cli.session.row()).head;
    kept = (await cli.session.trim(head + 1)).kept;
  }
  for (const target of [id, cli.session.id]) {
    const { code, err } = await cli.type("logs", target);
    expect({ code, err }).toEqual({ code: 0, err: `belay: events up to position ${head} are not kept any more\n` });
  }
});

test.each([
  [["--detach", "--timeout", "1000"], "--timeout cannot be used with --detach"],
  [["--session", "ses_x", "--title", "T"], "'--title <text>' cannot be used with option '--session <id>'"],
])("run %j is refused, and no option is ignored", async (args, advice) => {
  const { code, err } = await cli.type("run", ...args, "hello");
  expect(code).toBe(EXIT_CODE.invalid);
  expect(err).toContain(advice);
});

describe("follow", () => {
  test("prints a run from its acceptance to its outcome: events as lines, deltas as text", async () => {
    const { id, turn } = await cli.live("hello");
    let hasText = false;
    const { code, out, err } = await said(cli.start("follow", id), (text) => {
      if (hasText && text.includes("one")) turn.complete();
      if (hasText || !text.includes("turn.requested")) return;
      hasText = true;
      turn.say("one \u001b[31mtwo");
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/ +\d+ {2}\S+ {2}run\.accepted +run_\S+ hello/);
    expect(out).toContain("\none two\n");
    expect(out.trimEnd()).toMatch(/run\.settled +run_\S+ completed$/);
  });

  test("Ctrl-C exits, cancels nothing, and says so; --json prints JSON lines", async () => {
    const { id } = await cli.live();
    const child = cli.start("follow", cli.session.id, "--after", "0", "--json");
    // Once: a second Ctrl-C exits at once, without a message.
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
    expect((await cli.session.explain()).live).toMatchObject({ runId: id, phase: "running" });
  });

  test("without an id follows every session", async () => {
    const child = cli.start("follow");
    let asked = false;
    const done = said(child, (text) => {
      if (!asked && text.includes("run.accepted")) asked = child.kill("SIGTERM");
    });
    await expect.poll(() => cli.handler.streams, { timeout: 8_000 }).toBe(1);
    await cli.session.prompt("now").accepted;
    const { code, out } = await done;
    expect(code).toBe(EXIT_SIGNAL.SIGTERM);
    expect(out).toMatch(new RegExp(`^${cli.session.id} +2 .*run\\.accepted +run_\\S+ now$`, "m"));
  });
});
