import { describe, expect, test } from "vitest";
import { answerOf, asked } from "../../test/fixtures/provider/models.ts";
import { type ProviderServer, startProvider } from "../../test/fixtures/provider/server.ts";
import { type ModelSources, resolveModel } from "./resolve-model.ts";

const ask = async (name: string, sources: Partial<ModelSources>): Promise<void> => {
  const model = await resolveModel(name, { env: {}, keys: new Map(), ...sources });
  const parts = await answerOf(model, { prompt: asked("go") });
  expect(parts.filter(({ type }) => type === "error")).toEqual([]);
};

/** The request that the test's provider received. */
function received({ requests, violations }: ProviderServer) {
  expect(violations).toEqual([]);
  const [request] = requests;
  const { authorization, "x-api-key": key } = request?.headers ?? {};
  return { format: request?.format, model: Reflect.get(Object(request?.body), "model"), key: key ?? authorization };
}

describe("a model by its name", () => {
  test("anthropic/… sends the key, whether or not the base URL contains the version", async () => {
    const keys = new Map([["ANTHROPIC_API_KEY", "key-a"]]);
    for (const cut of ["", "/", "/v1", "/v1/"]) {
      await using server = await startProvider([[{ text: "ok" }]]);
      const ANTHROPIC_BASE_URL = server.baseURL.replace(/\/v1$/, cut);
      await ask("anthropic/claude-x", { env: { ANTHROPIC_BASE_URL }, keys });
      expect(received(server)).toEqual({ format: "anthropic", model: "claude-x", key: "key-a" });
    }
  });

  test("openai/… at a base URL other than OpenAI's uses the chat API, with the key", async () => {
    await using server = await startProvider([[{ text: "ok" }]]);
    const keys = new Map([["OPENAI_API_KEY", "key-o"]]);
    await ask("openai/gpt-x", { env: { OPENAI_BASE_URL: `${server.baseURL}/` }, keys });
    expect(received(server)).toEqual({ format: "openai-chat", model: "gpt-x", key: "Bearer key-o" });
  });

  test("a user's provider gets its own key, and the name of a model may contain slashes", async () => {
    await using server = await startProvider([[{ text: "ok" }]]);
    const providers = { local: { baseUrl: server.baseURL, apiKeyEnv: "LOCAL_API_KEY" } };
    const keys = new Map([
      ["LOCAL_API_KEY", "key-h"],
      ["OPENAI_API_KEY", "key-o"],
    ]);
    await ask("local/org/model", { providers, keys });
    expect(received(server)).toEqual({ format: "openai-chat", model: "org/model", key: "Bearer key-h" });
  });

  test("OpenAI itself is called through its Responses API", async () => {
    const keys = new Map([["OPENAI_API_KEY", "key-o"]]);
    const model = await resolveModel("openai/gpt-x", { env: {}, keys });
    expect([model.provider, model.modelId]).toEqual(["openai.responses", "gpt-x"]);
    const same = await resolveModel("openai/gpt-x", { env: { OPENAI_BASE_URL: "https://api.openai.com/v1" }, keys });
    expect(same.provider).toBe("openai.responses");
  });

  test.each([
    ["gpt-5", {}, "is not the name of a model", "openai/gpt-5"],
    ["/x", {}, "is not the name of a model", "openai/gpt-5.1"],
    ["openai/", {}, "is not the name of a model", "openai/"],
    ["openai/x", {}, "There is no key for openai/x: OPENAI_API_KEY is not set.", "OPENAI_API_KEY_FILE"],
    ["anthropic/x", {}, "ANTHROPIC_API_KEY is not set.", "Set ANTHROPIC_API_KEY"],
    ["antropic/x", {}, "Did you mean anthropic/x?", "providers"],
    ["__proto__/x", { providers: {} }, 'There is no provider "__proto__"', "providers"],
    [
      "h/x",
      { providers: { h: { baseUrl: "http://h", apiKeyEnv: "H_API_KEY" } } },
      "H_API_KEY is not set.",
      "H_API_KEY",
    ],
    [
      "openai/x",
      { env: { OPENAI_BASE_URL: "http://me:pass-word@h" } },
      "OPENAI_BASE_URL is not a usable URL",
      "For example",
    ],
    ["openai/x", { env: { OPENAI_BASE_URL: "file:///etc" } }, "OPENAI_BASE_URL is not a usable URL", "For example"],
  ] as const)("%s cannot be resolved, and the error has a hint", async (name, sources, message, hint) => {
    const error: unknown = await resolveModel(name, { env: {}, keys: new Map(), ...sources }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      code: "invalid",
      message: expect.stringContaining(message),
      hint: expect.stringContaining(hint),
    });
    expect(String(error)).not.toContain("pass-word");
  });
});
