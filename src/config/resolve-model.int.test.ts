import { describe, expect, test } from "vitest";
import { answerOf, asked } from "../../test/fixtures/provider/models.ts";
import { type ProviderServer, startProvider } from "../../test/fixtures/provider/server.ts";
import { type ModelSources, resolveModel } from "./resolve-model.ts";

const ask = async (name: string, sources: Partial<ModelSources>): Promise<void> => {
  const model = await resolveModel(name, { env: {}, keys: new Map(), ...sources });
  const parts = await answerOf(model, { prompt: asked("go") });
  expect(parts.filter(({ type }) => type === "error")).toEqual([]);
};

/** What has arrived at the provider of the test. */
function arrived({ requests, violations }: ProviderServer) {
  expect(violations).toEqual([]);
  const [request] = requests;
  const { authorization, "x-api-key": key } = request?.headers ?? {};
  return { format: request?.format, model: Reflect.get(Object(request?.body), "model"), key: key ?? authorization };
}

describe("a model by its name", () => {
  test("anthropic/… asks with the key, whether or not the address has its version", async () => {
    const keys = new Map([["ANTHROPIC_API_KEY", "key-a"]]);
    for (const cut of ["", "/", "/v1", "/v1/"]) {
      await using server = await startProvider([[{ text: "ok" }]]);
      const ANTHROPIC_BASE_URL = server.baseURL.replace(/\/v1$/, cut);
      await ask("anthropic/claude-x", { env: { ANTHROPIC_BASE_URL }, keys });
      expect(arrived(server)).toEqual({ format: "anthropic", model: "claude-x", key: "key-a" });
    }
  });

  test("openai/… at another address than OpenAI's speaks what others understand, with a key", async () => {
    await using server = await startProvider([[{ text: "ok" }]]);
    const keys = new Map([["OPENAI_API_KEY", "key-o"]]);
    await ask("openai/gpt-x", { env: { OPENAI_BASE_URL: `${server.baseURL}/` }, keys });
    expect(arrived(server)).toEqual({ format: "openai-chat", model: "gpt-x", key: "Bearer key-o" });
  });

  test("a provider of one's own is asked with its own key, and a name may have slashes in it", async () => {
    await using server = await startProvider([[{ text: "ok" }]]);
    const providers = { house: { baseUrl: server.baseURL, apiKeyEnv: "HOUSE_API_KEY" } };
    const keys = new Map([
      ["HOUSE_API_KEY", "key-h"],
      ["OPENAI_API_KEY", "key-o"],
    ]);
    await ask("house/org/model", { providers, keys });
    expect(arrived(server)).toEqual({ format: "openai-chat", model: "org/model", key: "Bearer key-h" });
  });

  test("OpenAI itself is asked by its own interface", async () => {
    const keys = new Map([["OPENAI_API_KEY", "key-o"]]);
    const model = await resolveModel("openai/gpt-x", { env: {}, keys });
    expect([model.provider, model.modelId]).toEqual(["openai.responses", "gpt-x"]);
    const same = await resolveModel("openai/gpt-x", { env: { OPENAI_BASE_URL: "https://api.openai.com/v1" }, keys });
    expect(same.provider).toBe("openai.responses");
  });

  test.each([
    ["gpt-5", {}, "is no name of a model", "openai/gpt-5"],
    ["/x", {}, "is no name of a model", "openai/gpt-5.1"],
    ["openai/", {}, "is no name of a model", "openai/"],
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
    ["openai/x", { env: { OPENAI_BASE_URL: "http://me:pass-word@h" } }, "OPENAI_BASE_URL is no address", "Such as"],
    ["openai/x", { env: { OPENAI_BASE_URL: "file:///etc" } }, "OPENAI_BASE_URL is no address", "Such as"],
  ] as const)("%s cannot be asked, and it is said why", async (name, sources, message, hint) => {
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
