// The mode of a session, as seen by its agent, its calls and its questions.
import { describe, expect, test } from "vitest";
import type { Agent, AgentMode, CallRequest } from "../ports/agent.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { scriptedAgent } from "../testing/scripted-agent.ts";
import { openBelay } from "./belay.ts";
import type { BelayOptions } from "./belay-options.ts";

const MODES: readonly AgentMode[] = [
  { id: "ask", name: "Ask" },
  { id: "auto", name: "Auto" },
];

const moded = <A extends Agent>(agent: A, mode?: string): A & { readonly modes: readonly AgentMode[] } =>
  Object.assign(agent, { modes: MODES, ...(mode === undefined ? {} : { mode }) });

/** A turn that makes this call, and then ends. */
const calling = (request: Omit<CallRequest, "name" | "input">): Agent =>
  moded(async (turn) => (turn.spent.turns > 0 ? "" : { calls: [{ name: "work", input: null, ...request }] }), "auto");

const asksInAsk: NonNullable<CallRequest["approval"]> = (_, { mode }) => mode === "ask";

async function opened(agent: Agent, options: Partial<BelayOptions> = {}) {
  const belay = await openBelay({ agent, store: ":memory:", ...options });
  return { belay, session: await belay.createSession() };
}

describe("a change of the mode and the start of a call, in either order", () => {
  test("a change recorded before the call is decided applies to it", async () => {
    const [reached, hook] = [new Gate(), new Gate()];
    const beforeCall = async (): Promise<void> => {
      reached.open();
      await hook.opened;
    };
    const { belay, session } = await opened(calling({ approval: asksInAsk, execute: ({ mode }) => mode ?? null }), {
      hooks: { beforeCall },
    });
    await using _ = belay;
    const run = session.prompt("go");
    await reached.opened;
    await session.setMode("ask");
    hook.open();
    await expect.poll(() => session.questions()).toHaveLength(1);
    await belay.questions.allow((await session.questions())[0]?.id ?? "");
    expect(await run.outcome).toEqual({ kind: "completed" });
  });

  test("a change recorded after the call was allowed does not stop it, and the call sees the new mode", async () => {
    const [begun, goOn] = [new Gate(), new Gate()];
    const seen: unknown[] = [];
    const execute: CallRequest["execute"] = async (call) => {
      seen.push(call.mode);
      begun.open();
      await goOn.opened;
      seen.push(call.mode);
    };
    const { belay, session } = await opened(calling({ approval: asksInAsk, execute }));
    await using _ = belay;
    const run = session.prompt("go");
    await begun.opened;
    await session.setMode("ask");
    goOn.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(seen).toEqual(["auto", "ask"]);
    expect(await session.questions()).toEqual([]);
  });

  test("a question keeps the mode in which it was asked", async () => {
    const done: unknown[] = [];
    const { belay, session } = await opened(
      calling({ approval: (_, { mode }) => mode === "ask", execute: () => void done.push("done") }),
    );
    await using _ = belay;
    await session.setMode("ask");
    const run = session.prompt("go");
    await expect.poll(() => session.questions()).toHaveLength(1);
    await session.setMode("auto");
    expect([done, (await session.questions()).length]).toEqual([[], 1]);
    await belay.questions.allow((await session.questions())[0]?.id ?? "");
    await run.outcome;
    expect(done).toEqual(["done"]);
  });

  test("G3: a change that is not durable yet has no effect, and neither has a refused one", async () => {
    const clock = manualClock();
    const store = faultyStore(new MemoryStore({ clock }));
    const agent = moded(scriptedAgent(), "ask");
    const { belay, session } = await opened(agent, { store, clock });
    await using _ = belay;
    const run = session.prompt("go");
    const turn = await agent.nextTurn();
    const written = new Gate();
    store.plan("append", 1, { kind: "delay", until: written });
    const set = session.setMode("auto");
    expect(turn.given.mode).toBe("ask");
    written.open();
    await set;
    expect(turn.given.mode).toBe("auto");
    store.plan("append", 1, { kind: "fail", code: "store_full" });
    await expect(session.setMode("ask")).rejects.toMatchObject({ code: "store_full" });
    expect(turn.given.mode).toBe("auto");
    store.heal();
    turn.complete();
    await run.outcome;
  });
});

describe("the modes of an agent", () => {
  test("start with its first one, or with the one it names; without modes, every mode is refused", async () => {
    const first = await opened(moded(() => "x"));
    expect(await first.belay.status()).toMatchObject({ modes: MODES, mode: "ask" });
    const none = await opened(() => "x");
    expect(await none.belay.status()).toMatchObject({ modes: [], mode: undefined });
    expect((await none.session.explain()).mode).toBeUndefined();
    await expect(none.session.setMode("auto")).rejects.toThrow("this agent has no modes");
    await first.belay.close();
    await none.belay.close();
  });

  test("may lack the mode that a session has from an earlier agent", async () => {
    const kept = faultyStore(new MemoryStore({ clock: manualClock() }));
    // Both Belays use the same store, and neither closes it.
    kept.close = async () => {};
    const before = await opened(
      moded(() => "x"),
      { store: kept },
    );
    await before.session.setMode("auto");
    await before.belay.close();
    const other = Object.assign((): string => "x", { modes: [{ id: "plan", name: "Plan" }] });
    const after = await openBelay({ agent: other, store: kept });
    expect((await after.session(before.session.id).explain()).mode).toBe("plan");
    await after.close();
  });

  test.each([
    [{ modes: "ask" }, "are a list"],
    [{ modes: ["ask"] }, "an object with `id` and `name`"],
    [{ modes: [{ id: "Ask", name: "x" }] }, "small letters"],
    [{ modes: [{ id: "a".repeat(65), name: "x" }] }, "at most 64"],
    [{ modes: [{ id: "ask", name: " " }] }, "has a `name`"],
    [{ modes: [{ id: "ask", name: "x", description: 3 }] }, "`description`"],
    [{ modes: [{ id: "ask", name: "x", icon: "y" }] }, "has no `icon`"],
    [{ modes: [...MODES, MODES[0]] }, 'two modes "ask"'],
    [{ modes: MODES, mode: "plan" }, "is one of its `modes`"],
    [{ mode: "ask" }, "is one of its `modes`"],
    [{ modes: Array.from({ length: 33 }, (_, index) => ({ id: `m${index}`, name: "x" })) }, "at most 32"],
  ])("are checked by openBelay(): %j", async (said, message) => {
    const agent: Agent = Object.assign(() => "x", said as Pick<Agent, "modes">);
    await expect(openBelay({ agent, store: ":memory:" })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(message),
    });
  });
});
