// The rules for cancels that agents of this protocol are tested by, in both versions, with the order forced by gates.
// Uses raw lines, so that no client code hides the answers.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFailed, test } from "vitest";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { Gates } from "./gates.ts";
import { brokenLaws } from "./laws.ts";
import { invalidMessages } from "./message-schema.ts";
import { greeting, notification, RawClient } from "./raw-client.ts";
import { agent } from "./script-agent.ts";
import { belayOf, fieldsOf, type Message, type Said, textOf, updateOf, type Version } from "./transcript.ts";

let dir: string;
let gates: Gates;
let belay: Belay;
const clients: RawClient[] = [];
let names = 0;

beforeAll(async () => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "belay-rules-")));
  gates = await Gates.open(dir);
  belay = await openBelay({ agent, store: ":memory:", directories: "any" });
});

afterEach(async () => {
  for (const client of clients.splice(0)) {
    await client.drop();
    const { said } = client.transcript;
    expect(brokenLaws(said, client.version, { end: "open" })).toEqual([]);
    expect(invalidMessages(said, client.version)).toEqual([]);
  }
});

afterAll(async () => {
  await belay.close({ mode: "cancel", limitMs: 1_000 });
  await gates.close();
  rmSync(dir, { recursive: true, force: true });
});

async function opened(version: Version): Promise<{ readonly client: RawClient; readonly session: string }> {
  const client = await RawClient.open(acpAgent({ control: belay, clock: systemClock, version: "0" }), version);
  clients.push(client);
  onTestFailed(() => console.error(client.transcript.shown));
  return { client, session: await client.newSession(dir) };
}

function gate(): string {
  names += 1;
  return `gate-${names}`;
}

/** How the run of a prompt ended: by its answer or, in version 2, by the idle update. */
async function ended(client: RawClient, id: Message["id"]): Promise<string> {
  const answer = await client.answer(id);
  if (client.version === 1) return textOf(answer.result?.stopReason) || `error ${answer.error?.code}`;
  if (answer.error !== undefined) return answer.error.code === -32800 ? "cancelled" : `error ${answer.error.code}`;
  return client.transcript.when((said) => textOf(idleOf(said, answer)?.stopReason) || undefined);
}

const idleOf = (said: readonly Said[], { result }: Message) =>
  said
    .flatMap((one) => updateOf(one)?.update ?? [])
    .find((update) => update.state === "idle" && belayOf(update).runId === result?.messageId);

const cancel = (sessionId: string, more: object = {}): Message =>
  notification("session/cancel", { sessionId, ...more });

describe.each([1, 2] as const)("version %d of the protocol", (version) => {
  test.each([
    ["only with its session", {}],
    ["with anything in _meta", { _meta: { "other.example": { a: 1 }, traceparent: "00-0-0-00" } }],
  ])(
    "201, 203, 206, 207: a cancel %s ends the turn as cancelled, with no other value and no error",
    async (_, more) => {
      const { client, session } = await opened(version);
      const g = gate();
      const prompt = client.prompt(session, `say one; call read_file ${g}`);
      await client.send(prompt);
      await gates.reached(g);
      await client.send(cancel(session, more));
      expect(await ended(client, prompt.id)).toBe("cancelled");
      expect((await client.answer(prompt.id)).error).toBeUndefined();
    },
  );

  test("202: no update of the turn follows its end", { meta: { id: "acp/silent-after-turn-end" } }, async () => {
    const { client, session } = await opened(version);
    const g = gate();
    const prompt = client.prompt(session, `say one; deaf ${g}; say late`);
    await client.send(prompt);
    await gates.reached(g);
    await client.send(cancel(session));
    await client.ask("_belay/session/explain", { sessionId: session });
    gates.open(g);
    expect(await ended(client, prompt.id)).toBe("cancelled");
    const count = client.transcript.said.length;
    await client.ask("session/list", {});
    expect(client.after(count).filter(({ method }) => method !== undefined)).toEqual([]);
  });

  test("205: a cancel has no answer, even if there is nothing to cancel or no such session", async () => {
    const { client, session } = await opened(version);
    const count = client.transcript.said.length;
    await client.send(cancel(session), cancel("ses_nowhere"), cancel("nonsense"));
    await client.ask("_belay/session/explain", { sessionId: session });
    expect(client.after(count)).toHaveLength(1);
  });

  test("208: a close ends the live run as cancelled, and is answered after it", async () => {
    const { client, session } = await opened(version);
    const g = gate();
    const prompt = client.prompt(session, `call read_file ${g}`);
    await client.send(prompt);
    await gates.reached(g);
    const close = client.request("session/close", { sessionId: session });
    await client.send(close);
    expect((await client.answer(close.id)).error).toBeUndefined();
    const { said } = client.transcript;
    const answered = said.findIndex(({ by, message }) => by === "agent" && message.id === close.id);
    expect(await ended(client, prompt.id)).toBe("cancelled");
    const end = said.findLastIndex((one) => JSON.stringify(one.message).includes('"stopReason":"cancelled"'));
    expect(end).toBeLessThan(answered);
  });

  test("G7: a cancel right after a prompt, in the same chunk, covers it", async () => {
    const { client, session } = await opened(version);
    const prompt = client.prompt(session, `gate ${gate()}`);
    await client.send(prompt, cancel(session));
    expect(await ended(client, prompt.id)).toBe("cancelled");
  });

  test("G7: a cancel right before a prompt, in the same chunk, does not", async () => {
    const { client, session } = await opened(version);
    const prompt = client.prompt(session, "say one");
    await client.send(cancel(session), prompt);
    expect(await ended(client, prompt.id)).toBe("end_turn");
  });

  test("G7: a cancel between two prompts covers the first and not the second", async () => {
    const { client, session } = await opened(version);
    const [first, second] = [client.prompt(session, `gate ${gate()}`), client.prompt(session, "say two")];
    await client.send(first, cancel(session), second);
    expect(await ended(client, first.id)).toBe("cancelled");
    expect(await ended(client, second.id)).toBe("end_turn");
  });

  test("a $/cancel_request right after a prompt, in the same chunk, covers only that prompt", async () => {
    const { client, session } = await opened(version);
    const [first, second] = [client.prompt(session, `gate ${gate()}`), client.prompt(session, "say two")];
    const third = client.prompt(session, "say three");
    await client.send(
      first,
      second,
      notification("$/cancel_request", { requestId: second.id }),
      third,
      cancel(session),
    );
    expect(await ended(client, second.id)).toBe("cancelled");
    expect(await ended(client, third.id)).toBe("cancelled");
    expect(await ended(client, first.id)).toBe("cancelled");
  });

  test("G7: a cancel sent as a request is answered, and cancels", async () => {
    const { client, session } = await opened(version);
    const g = gate();
    const prompt = client.prompt(session, `gate ${g}`);
    await client.send(prompt);
    await gates.reached(g);
    expect((await client.ask("session/cancel", { sessionId: session })).error).toBeUndefined();
    expect(await ended(client, prompt.id)).toBe("cancelled");
  });

  test("a second prompt while busy is held", async () => {
    const { client, session } = await opened(version);
    const g = gate();
    const [first, second] = [client.prompt(session, `gate ${g}`), client.prompt(session, "say two")];
    await client.send(first, second);
    await gates.reached(g);
    await client.ask("_belay/session/explain", { sessionId: session });
    expect(client.transcript.said.filter(({ message }) => message.id === second.id)).toHaveLength(1);
    gates.open(g);
    expect(await ended(client, second.id)).toBe("end_turn");
  });

  test("a client gets only requests that it supports", async () => {
    const { client, session } = await opened(version);
    const prompt = client.prompt(session, "sh true; ask");
    await client.send(prompt);
    const isAsk = ({ by, message }: Said): boolean =>
      by === "agent" && message.method !== undefined && message.id !== undefined;
    await client.transcript.when((said) => said.find(isAsk));
    await client.send(cancel(session));
    await ended(client, prompt.id);
    const methods = client.transcript.said.filter(isAsk).map(({ message }) => message.method);
    expect(methods).toEqual(["session/request_permission"]);
  });

  test("a stop of one call right after the end of its run is refused and stops nothing", async () => {
    const { client, session } = await opened(version);
    const g = gate();
    gates.open(g);
    const prompt = client.prompt(session, `call read_file ${g}`);
    await client.send(prompt);
    await ended(client, prompt.id);
    const call = client.transcript.said.flatMap((one) => textOf(updateOf(one)?.update.toolCallId) || [])[0];
    const h = gate();
    const next = client.prompt(session, `call read_file ${h}`);
    await client.send(next);
    await gates.reached(h);
    const method = version === 1 ? "_belay/tool_call/cancel" : "tool_call/cancel";
    const { error } = await client.ask(method, { sessionId: session, toolCallId: call });
    expect(error?.code).toBe(-32602);
    gates.open(h);
    expect(await ended(client, next.id)).toBe("end_turn");
    expect(fieldsOf(error?.data).code).toBe("invalid");
  });
});

test.each([
  [65_535, 2],
  [3, 2],
  [2, 2],
  [1, 1],
])("version %d is answered with %d", async (asked, spoken) => {
  const client = RawClient.connect(
    acpAgent({ control: belay, clock: systemClock, version: "0" }),
    spoken === 1 ? 1 : 2,
  );
  const { result } = await client.ask("initialize", greeting(asked));
  expect(result?.protocolVersion).toBe(spoken);
  await client.drop();
});
