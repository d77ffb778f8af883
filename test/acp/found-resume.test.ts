// Regression tests for resuming a session with pending prompts: they were never answered.
import { tmpdir } from "node:os";
import { expect, onTestFailed, onTestFinished, test } from "vitest";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { Gate } from "../../src/testing/gate.ts";
import { brokenLaws } from "./laws.ts";
import { RawClient } from "./raw-client.ts";
import { fieldsOf, textOf, updateOf, type Version } from "./transcript.ts";

async function opened(): Promise<Belay> {
  const belay = await openBelay({ agent: (turn) => turn.prompt.text, store: ":memory:", directories: "any" });
  onTestFinished(async () => void (await belay.close({ mode: "cancel", limitMs: 1_000 })));
  return belay;
}

const agentOf = (belay: Belay) => acpAgent({ control: belay, clock: systemClock, version: "0" });

const resume = (client: RawClient, sessionId: string) =>
  client.request("session/resume", { sessionId, cwd: tmpdir(), mcpServers: [] });

const said = ({ transcript }: RawClient): string =>
  transcript.said
    .flatMap((one) => {
      const update = updateOf(one)?.update;
      return update?.sessionUpdate === "agent_message_chunk" ? [textOf(fieldsOf(update.content).text)] : [];
    })
    .join(" ");

/** Both are answered, and all protocol laws hold. */
async function looksRight(client: RawClient, version: Version, ids: readonly unknown[]): Promise<void> {
  for (const id of ids) expect((await client.answer(id as number)).error).toBeUndefined();
  await client.ask("session/list", {});
  expect(brokenLaws(client.transcript.said, version, { end: "open" })).toEqual([]);
}

test.each([1, 2] as const)(
  "prompts before and after a resume are answered and reported completely, v%d",
  async (version) => {
    const client = await RawClient.open(agentOf(await opened()), version);
    onTestFailed(() => console.error(client.transcript.shown));
    const session = await client.newSession(tmpdir());
    for (let round = 0; round < 20; round += 1) {
      const [before, behind] = [client.prompt(session, "one"), client.prompt(session, "two")];
      const resumed = resume(client, session);
      await client.send(before, resumed, behind);
      await looksRight(client, version, [before.id, resumed.id, behind.id]);
    }
    await client.ask("session/close", { sessionId: session });
    expect(said(client)).toBe(Array.from({ length: 20 }, () => "one two").join(" "));
  },
);

test.each([1, 2] as const)(
  "a prompt right after the resume that opens the session is answered, v%d",
  async (version) => {
    const belay = await opened();
    for (let round = 0; round < 20; round += 1) {
      const { id } = await belay.createSession({ cwd: tmpdir() });
      const client = await RawClient.open(agentOf(belay), version);
      onTestFailed(() => console.error(client.transcript.shown));
      const resumed = resume(client, id);
      const prompt = client.prompt(id, "one");
      await client.send(resumed, prompt);
      await looksRight(client, version, [resumed.id, prompt.id]);
      // Waits until every prompt is answered.
      await client.ask("session/close", { sessionId: id });
    }
  },
);

test.each([1, 2] as const)(
  "a delete after a close is answered when the close has reported everything, v%d",
  async (version) => {
    const waits = ({ signal }: { readonly signal: AbortSignal }): Promise<string> =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    const belay = await openBelay({ agent: waits, store: ":memory:", directories: "any" });
    onTestFinished(async () => void (await belay.close({ mode: "cancel", limitMs: 1_000 })));
    const client = await RawClient.open(agentOf(belay), version);
    onTestFailed(() => console.error(client.transcript.shown));
    for (let round = 0; round < 10; round += 1) {
      const session = await client.newSession(tmpdir());
      const prompts = [client.prompt(session, "one"), client.prompt(session, "two")];
      const [closed, deleted] = ["session/close", "session/delete"].map((method) =>
        client.request(method, { sessionId: session }),
      );
      if (closed === undefined || deleted === undefined) throw new Error("two were made");
      await client.send(...prompts, closed, deleted);
      for (const { id } of [...prompts, closed, deleted]) await client.answer(id);
    }
    await client.ask("session/list", {});
    expect(brokenLaws(client.transcript.said, version, { end: "finished" })).toEqual([]);
  },
);

test.each([1, 2] as const)(
  "a run that begins while its session is resumed is shown with its prompt, v%d",
  async (version) => {
    const first = new Gate();
    const belay = await openBelay({
      agent: ({ prompt }) => (prompt.text === "first" ? first.opened.then(() => "done") : "done"),
      ...{ store: ":memory:", directories: "any" },
    });
    onTestFinished(async () => void (await belay.close({ mode: "cancel", limitMs: 1_000 })));
    const session = await belay.createSession({ cwd: tmpdir() });
    session.prompt("first");
    const second = session.prompt("second");
    await second.accepted;
    // The queue is read late, after the second prompt has ended.
    const control = new Proxy(belay, {
      get: (target, name) => {
        if (name !== "session") return bound(target, name);
        return (id: string) =>
          new Proxy(target.session(id), {
            get: (one, field) =>
              field === "queue" ? { list: () => second.outcome.then(() => []) } : bound(one, field),
          });
      },
    });
    const client = await RawClient.open(agentOf(control), version);
    const resumed = resume(client, session.id);
    await client.send(resumed);
    setImmediate(() => first.open());
    await client.answer(resumed.id);
    await client.transcript.when((all) =>
      all.some((one) => JSON.stringify(one.message).includes("second")) ? true : undefined,
    );
  },
);

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === "function" ? value.bind(target) : value;
}
