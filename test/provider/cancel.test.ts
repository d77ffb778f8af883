// That a cancel closes the provider's socket, at every stage of an answer and with every package: what Belay builds on.
import { describe, expect, test } from "vitest";
import { startDeafListener } from "./deaf-listener.ts";
import { answerOf, asked, MODEL_NAMES, modelsAt, ofType } from "./models.ts";
import { type Script, script } from "./script.ts";
import { startProvider } from "./server.ts";

const stages: Readonly<Record<string, Script>> = {
  "before the headers": script([{ hold: "here" }]),
  "after the headers": script([{ headers: true }, { hold: "here" }]),
  "after the opening": script([{ begin: true }, { hold: "here" }]),
  "in reasoning": script([{ reasoning: "hm" }, { hold: "here" }]),
  "in text": script([{ text: "Hel" }, { hold: "here" }]),
  "inside a call": script([{ call: { name: "read", input: { path: "a" } }, holdInside: "here" }]),
  "after a call": script([{ call: { name: "read", input: { path: "a" } } }, { hold: "here" }]),
};

describe.each(MODEL_NAMES)("%s", (name) => {
  test.each(Object.keys(stages))("a cancel %s closes the socket", async (stage) => {
    await using server = await startProvider([stages[stage] ?? []]);
    const controller = new AbortController();
    const reason = new Error("cancelled by the test");
    const abortSignal = controller.signal;
    const answer = answerOf(modelsAt(server.baseURL)[name], { prompt: asked("go"), abortSignal });
    await server.reached("here");
    controller.abort(reason);
    // The answer is still held: only the abort can have closed it. How soon is measured in the bench `turns`.
    const closedAt = await server.requests[0]?.closed;
    expect(closedAt).toBeTypeOf("number");
    expect(server.requests[0]?.closedAt).toBe(closedAt);
    const seen = await answer;
    expect(ofType(seen, "finish")).toEqual([]);
    // The reason comes out as it is, or as the cause of an error about the response.
    const { error } = ofType(seen, "error").at(-1) ?? {};
    expect(error === reason || (error instanceof Error && error.cause === reason)).toBe(true);
    expect(server.violations).toEqual([]);
  });

  test.each([
    ["is silent", [{ text: "." }, { silence: true }]],
    ["dribbles", [{ dribble: "." }]],
  ] as const)("a cancel of a stream that %s closes the socket", async (_, steps) => {
    await using server = await startProvider([steps]);
    const controller = new AbortController();
    const abortSignal = controller.signal;
    const { stream } = await modelsAt(server.baseURL)[name].doStream({ prompt: asked("go"), abortSignal });
    const reading = async (): Promise<void> => {
      for await (const part of stream) {
        if (part.type !== "text-delta" || part.delta !== "." || abortSignal.aborted) continue;
        controller.abort();
      }
    };
    await expect(reading()).rejects.toThrow("aborted");
    expect(await server.requests[0]?.closed).toBeTypeOf("number");
  });

  test("a cancel while nobody reads the request closes the socket", async () => {
    await using deaf = await startDeafListener();
    const controller = new AbortController();
    const answer = modelsAt(deaf.baseURL)[name].doStream({ prompt: asked("go"), abortSignal: controller.signal });
    const refused = expect(answer).rejects.toThrow("aborted");
    const connection = await deaf.connection(0);
    controller.abort();
    expect(await connection.closed()).toBeTypeOf("number");
    await refused;
  });

  test("giving up the stream closes the socket too, once there is a stream", async () => {
    await using server = await startProvider([[{ text: "Hel" }, { hold: "here" }]]);
    const { stream } = await modelsAt(server.baseURL)[name].doStream({ prompt: asked("go") });
    await server.reached("here");
    await stream.cancel();
    expect(await server.requests[0]?.closed).toBeTypeOf("number");
  });

  test("a signal that was aborted before sends no request", async () => {
    await using server = await startProvider([]);
    const abortSignal = AbortSignal.abort();
    await expect(modelsAt(server.baseURL)[name].doStream({ prompt: asked("go"), abortSignal })).rejects.toThrow();
    expect(server.requests).toEqual([]);
  });
});
