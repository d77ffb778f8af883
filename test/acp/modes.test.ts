// The mode of a session as editors set and see it, in both versions of the protocol.
import { describe, expect, onTestFinished, test } from "vitest";
import type { BelayControl, SessionControl } from "../../src/ports/control.ts";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import type { AcpClientInfo } from "../../src/protocols/acp/agent/acp-client-info.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { Gate } from "../../src/testing/gate.ts";
import { inMemory } from "./byte-line.ts";
import { invalidMessages } from "./message-schema.ts";
import { Peer, PeerSession } from "./peer.ts";
import type { Fields, Version } from "./transcript.ts";

const MODES = [
  { id: "ask", name: "Ask", description: "People are asked." },
  { id: "auto", name: "Auto" },
] as const;

const MAY_ALL: AcpClientInfo["may"] = new Set(["read", "prompt", "cancel", "approve"]);

async function openFixture(version: Version, modes: readonly (typeof MODES)[number][] = MODES) {
  const agent = Object.assign((): string => "done", { modes });
  const belay = await openBelay({ agent, store: ":memory:", directories: "any" });
  const peers: Peer[] = [];
  const connect = async (may = MAY_ALL, control: BelayControl = belay): Promise<Peer> => {
    const client = { name: "ed", may };
    const acp = acpAgent({ control, clock: systemClock, version: "0", client });
    const peer = await Peer.open(inMemory(acp), version);
    peers.push(peer);
    return peer;
  };
  onTestFinished(async () => {
    for (const peer of peers) await peer.drop();
    await belay.close({ mode: "cancel" });
    for (const { transcript } of peers) expect(invalidMessages(transcript.said, version)).toEqual([]);
  });
  return { belay, connect };
}

const cwd = process.cwd();

/** The same Belay, whose log reports a change of the mode only when the gate is open. */
function toldLate(belay: Belay, late: Gate): BelayControl {
  const held = (session: SessionControl): SessionControl => {
    const pages: SessionControl["pages"] = async function* (options) {
      for await (const page of session.pages(options)) {
        if (page.some(({ type }) => type === "session.mode_set")) await late.opened;
        yield page;
      }
    };
    return over(session, { pages });
  };
  return over<BelayControl>(belay, {
    createSession: async (options) => held(await belay.createSession(options)),
    session: (id) => held(belay.session(id)),
  });
}

/** Methods are bound, because the object has private fields. */
const over = <T extends object>(whole: T, some: Partial<T>): T =>
  new Proxy(whole, {
    get: (_, name) => {
      const found: unknown = Reflect.get(Object.hasOwn(some, name) ? some : whole, name);
      return typeof found === "function" ? found.bind(whole) : found;
    },
  });

const opening = (version: Version, from: "start" | "now"): string =>
  version === 1 && from === "start" ? "session/load" : "session/resume";

const openParams = (sessionId: unknown, version: Version, from: "start" | "now"): Fields => ({
  ...{ sessionId, cwd, mcpServers: [] },
  ...(version === 2 && from === "start" ? { replayFrom: { type: "start" } } : {}),
});

/** The menus in an answer: the modes of version 1, and the option of both versions. */
function menus(answer: Fields): Fields {
  const { modes, configOptions } = answer;
  return { ...(modes === undefined ? {} : { modes }), ...(configOptions === undefined ? {} : { configOptions }) };
}

function expected(version: Version, current: string): Fields {
  const options = MODES.map(({ id, ...rest }) => ({ value: id, ...rest }));
  const option = { type: "select", category: "mode", name: "Mode", currentValue: current, options };
  const description = expect.any(String);
  const configOptions = [{ ...(version === 1 ? { id: "mode" } : { configId: "mode" }), ...option, description }];
  return version === 1
    ? { modes: { currentModeId: current, availableModes: MODES }, configOptions }
    : { configOptions };
}

const wish = (version: Version, value: unknown): Fields => ({
  ...{ configId: "mode", value },
  ...(version === 2 ? { type: "id" } : {}),
});

const told = (session: PeerSession): readonly unknown[] =>
  session.updates.flatMap((one) => {
    if (one.sessionUpdate === "current_mode_update") return [one.currentModeId];
    if (one.sessionUpdate !== "config_option_update") return [];
    const [option] = Array.isArray(one.configOptions) ? one.configOptions : [];
    return [`option ${String(option?.currentValue)}`];
  });

const both = (version: Version, mode: string): readonly string[] =>
  version === 1 ? [mode, `option ${mode}`] : [`option ${mode}`];

/** The modes set by other clients, which arrive when they are recorded. */
async function hears(session: PeerSession, mode: string): Promise<void> {
  await session.when(() => (told(session).includes(`option ${mode}`) ? true : undefined));
}

describe.each([1, 2] as const)("the mode of a session, version %s", (version) => {
  test("is part of every answer that opens a session, with the current value", async () => {
    const { belay, connect } = await openFixture(version);
    const peer = await connect();
    const made = await peer.request("session/new", { cwd, mcpServers: [] });
    expect(menus(made)).toEqual(expected(version, "ask"));
    await belay.session(String(made.sessionId)).setMode("auto");
    for (const from of ["start", "now"] as const) {
      const other = await connect();
      const answer = await other.request(opening(version, from), openParams(made.sessionId, version, from));
      expect(menus(answer)).toEqual(expected(version, "auto"));
      // History is not reported: the answer has the current mode.
      expect(told(new PeerSession(other, String(made.sessionId), cwd))).toEqual([]);
    }
  });

  test("is set by one editor, answered after the update, and reported to the others", async () => {
    const { belay, connect } = await openFixture(version);
    const [mine, theirs] = [await connect(), await connect()];
    const session = await mine.newSession(cwd);
    const seen = await theirs.open(session.id, cwd);
    const { configOptions } = await session.request("session/set_config_option", wish(version, "auto"));
    expect({ configOptions }).toEqual({ configOptions: expected(version, "auto").configOptions });
    expect(told(session)).toEqual(both(version, "auto"));
    await hears(seen, "auto");
    expect(told(seen)).toEqual(both(version, "auto"));
    expect((await belay.session(session.id).explain()).mode).toBe("auto");
    if (version === 2) return;
    expect(await session.request("session/set_mode", { modeId: "ask" })).toEqual({});
    expect((await belay.session(session.id).explain()).mode).toBe("ask");
    await hears(seen, "ask");
  });

  test("is answered only after its update was sent, however late that is", async () => {
    const { belay, connect } = await openFixture(version);
    const late = new Gate();
    const session = await (await connect(MAY_ALL, toldLate(belay, late))).newSession(cwd);
    let answered = false;
    const answer = session.request("session/set_config_option", wish(version, "auto")).then(() => {
      answered = true;
    });
    await expect.poll(async () => (await belay.session(session.id).explain()).mode).toBe("auto");
    // A later request on the same connection is answered before it.
    await session.request("_belay/session/explain");
    expect([answered, told(session)]).toEqual([false, []]);
    late.open();
    await answer;
    expect(told(session)).toEqual(both(version, "auto"));
  });

  test("set by another client is reported", async () => {
    const { belay, connect } = await openFixture(version);
    const session = await (await connect()).newSession(cwd);
    await belay.session(session.id).setMode("auto", { by: "ann" });
    await hears(session, "auto");
    expect(told(session)).toEqual(both(version, "auto"));
  });

  test("G35: cannot be set without approve permission, nor in a session that is not open here", async () => {
    const { belay, connect } = await openFixture(version);
    const mine = await (await connect()).newSession(cwd);
    const limited = await connect(new Set(["read", "prompt", "cancel"]));
    const theirs = await limited.open(mine.id, cwd);
    const refused = await theirs.refused("session/set_config_option", wish(version, "auto"));
    expect(refused).toMatchObject({ data: { code: "forbidden" } });
    if (version === 1) {
      expect(await theirs.refused("session/set_mode", { modeId: "auto" })).toMatchObject({
        data: { code: "forbidden" },
      });
    }
    const stranger = new PeerSession(await connect(), mine.id, cwd);
    expect(await stranger.refused("session/set_config_option", wish(version, "auto"))).toMatchObject({ code: -32002 });
    expect(await headOf(belay, mine.id)).toBe(1);
  });

  test("must be an existing mode, and there is no other option", async () => {
    const { belay, connect } = await openFixture(version);
    const session = await (await connect()).newSession(cwd);
    const bad = await session.refused("session/set_config_option", wish(version, "yolo"));
    expect(bad).toMatchObject({ code: -32602, message: expect.stringContaining("The modes are ask, auto.") });
    const other = { ...wish(version, "auto"), configId: "model" };
    expect((await session.refused("session/set_config_option", other)).code).toBe(-32602);
    expect(await headOf(belay, session.id)).toBe(1);
  });

  test("is not offered if the agent has no modes, and cannot be set then", async () => {
    const { connect } = await openFixture(version, []);
    const peer = await connect();
    const made = await peer.request("session/new", { cwd, mcpServers: [] });
    expect(menus(made)).toEqual({});
    const session = new PeerSession(peer, String(made.sessionId), cwd);
    expect((await session.refused("session/set_config_option", wish(version, "auto"))).code).toBe(-32602);
  });
});

const headOf = async (belay: Belay, id: string): Promise<number> => (await belay.session(id).row()).head;
