import { expect, test } from "vitest";
import { field } from "./json.ts";
import { answerOf, asked, MODEL_NAMES, modelsAt, ofType } from "./models.ts";
import { type ProviderServer, startProvider } from "./server.ts";

/** What the model makes of the next answer. */
async function textFrom(server: ProviderServer, prompt = asked("go")): Promise<string> {
  const seen = await answerOf(modelsAt(server.baseURL).chat, { prompt });
  for (const { error } of ofType(seen, "error")) throw error;
  return ofType(seen, "text-delta")
    .map((part) => part.delta)
    .join("");
}

test("each request has its own script, and what it was is recorded", async () => {
  await using server = await startProvider([[{ text: "one" }], [{ text: "two" }]]);
  expect(await textFrom(server)).toBe("one");
  expect(await textFrom(server)).toBe("two");
  server.add([{ text: "three" }]);
  expect(await textFrom(server, asked("third"))).toBe("three");
  expect(server.requests.map((request) => request.index)).toEqual([0, 1, 2]);
  const third = await server.request(2);
  expect(third.body).toMatchObject({ model: "gpt-4.1", messages: [{ role: "user", content: "third" }] });
  expect(third.headers["content-type"]).toBe("application/json");
  expect(third.format).toBe("openai-chat");
  expect(server.violations).toEqual([]);
});

test("an answer may depend on the request", async () => {
  await using server = await startProvider((request) => [{ text: `to ${String(field(request.body, "model"))}` }]);
  expect(await textFrom(server)).toBe("to gpt-4.1");
});

test("a function that throws is told, and nobody waits for its answer", async () => {
  await using server = await startProvider(() => {
    throw new Error("a mistake in the test");
  });
  await expect(textFrom(server)).rejects.toThrow();
  expect(server.violations).toMatchObject([{ request: 0, rule: "thrown", message: "Error: a mistake in the test" }]);
});

test("a request nobody scripted is refused and told", async () => {
  await using server = await startProvider([]);
  await expect(textFrom(server)).rejects.toThrow("There is no script for request 0.");
  expect(server.violations).toMatchObject([{ request: 0, rule: "unscripted" }]);
});

test("a gate holds the server until the test lets it go", async () => {
  await using server = await startProvider([[{ text: "a" }, { hold: "middle" }, { text: "b" }]]);
  const { stream } = await modelsAt(server.baseURL).anthropic.doStream({ prompt: asked("go") });
  await server.reached("middle");
  const reader = stream.getReader();
  const seen: string[] = [];
  while (!seen.includes("a")) {
    const { value } = await reader.read();
    if (value?.type === "text-delta") seen.push(value.delta);
  }
  server.release("middle");
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (next.value.type === "text-delta") seen.push(next.value.delta);
  }
  expect(seen).toEqual(["a", "b"]);
});

test("a gate may be opened before the server comes to it", async () => {
  await using server = await startProvider([[{ hold: "early" }, { text: "a" }]]);
  server.release("early");
  expect(await textFrom(server)).toBe("a");
  await server.reached("early");
});

test("headers, opening and first word can each be held back", async () => {
  await using server = await startProvider([
    [{ hold: "no headers" }, { headers: true }, { hold: "headers" }, { begin: true }, { hold: "begun" }, { text: "a" }],
  ]);
  const answer = fetch(`${server.baseURL}/messages`, {
    method: "POST",
    headers: { "x-api-key": "key", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({
      model: "m",
      stream: true,
      max_tokens: 1,
      messages: [{ role: "user", content: "go" }],
    }),
  });
  await server.reached("no headers");
  server.release("no headers");
  await server.reached("headers");
  const response = await answer;
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  server.release("headers");
  await server.reached("begun");
  const reader = response.body?.getReader();
  const first = new TextDecoder().decode((await reader?.read())?.value);
  expect(first).toMatch(/^event: message_start\n/);
  expect(first).not.toContain("content_block_start");
  server.release("begun");
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('"text":"a"');
  await reader?.cancel();
});

test.each(MODEL_NAMES)("%s: a request the provider would refuse is refused in its own format", async (name) => {
  await using server = await startProvider([[{ text: "a" }]]);
  const prompt = [...asked("go"), ...asked("")];
  const [answer] = ofType(await answerOf(modelsAt(server.baseURL)[name], { prompt }), "error");
  expect(answer?.error).toMatchObject({
    statusCode: 400,
    message: server.violations[0]?.message,
    // It was understood as an error of this provider.
    data: { error: { type: "invalid_request_error" } },
  });
  expect(server.violations).toHaveLength(1);
  expect(server.violations[0]?.rule).toMatch(/^(contentPresent|textNotBlank)$/);
});

test("whoever waits for a gate hears why the server will not come to it", async () => {
  await using server = await startProvider([[{ hold: "never" }]]);
  const never = server.reached("never");
  await expect(modelsAt(server.baseURL).chat.doStream({ prompt: asked("") })).rejects.toThrow();
  await expect(never).rejects.toThrow("Request 0 was refused (contentPresent)");
});

test.each([
  [{ method: "GET" }, "GET is not allowed"],
  [{ method: "POST", body: "{" }, "the body is not JSON"],
  [{ method: "POST", body: "{}" }, "stream: only true is spoken here"],
  [{ method: "POST", body: '{"stream":true}' }, "model: missing"],
  [{ method: "POST", body: "{}" }, "the header authorization is missing"],
])("%j: %s", async (init, message) => {
  await using server = await startProvider([]);
  const response = await fetch(`${server.baseURL}/chat/completions`, init);
  expect(response.status).toBe(400);
  expect(server.violations.map((one) => one.message)).toContain(message);
});

test("a path nobody listens at is told", async () => {
  await using server = await startProvider([]);
  expect((await fetch(`${server.baseURL}/embeddings`, { method: "POST", body: "{}" })).status).toBe(404);
  expect(server.violations).toMatchObject([{ rule: "http", message: "/v1/embeddings is not spoken here" }]);
});

test("closing the server closes what is held, silent and dribbling", async () => {
  await using server = await startProvider([[{ hold: "held" }], [{ silence: true }], [{ dribble: "." }]]);
  const model = modelsAt(server.baseURL).compatible;
  const answers: ReturnType<typeof answerOf>[] = [];
  for (const index of [0, 1, 2]) {
    answers.push(answerOf(model, { prompt: asked("go") }));
    await server.request(index);
  }
  await server.close();
  for (const answer of answers) expect((await answer).at(-1)).toMatchObject({ type: "error" });
  for (const request of server.requests) {
    expect(request.closedAt).toBeUndefined();
    await expect(request.closed).rejects.toThrow("The server was closed");
  }
});

test("a client that read to the end has not closed anything", async () => {
  await using server = await startProvider([[{ text: "a" }]]);
  await textFrom(server);
  expect(server.requests[0]?.closedAt).toBeUndefined();
  await expect(server.requests[0]?.closed).rejects.toThrow("The answer was over");
});

test.each([
  [[{ finish: "stop" }, { text: "a" }], "Nothing can follow"],
  [[{ text: "a" }, { status: 500 }], "There is no status after"],
  [[{ call: { name: "read", input: {}, arguments: "{}" } }], "has its arguments twice"],
] as const)("%j is no script", async (steps, message) => {
  await expect(async () => startProvider([steps])).rejects.toThrow(message);
});
