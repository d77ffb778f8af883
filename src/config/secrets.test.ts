import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Environment } from "./load-config.ts";
import { takeSecrets } from "./secrets.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-secrets-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function keyFile(content: string): string {
  const path = join(folder, "key");
  writeFileSync(path, content);
  return path;
}

const providers = { local: { baseUrl: "http://h/v1", apiKeyEnv: "LOCAL_API_KEY" } };

describe("G35: the keys of providers", () => {
  test("are removed from the environment, which keeps everything else", async () => {
    const env: Environment = { OPENAI_API_KEY: "openai-key", LOCAL_API_KEY: " local-key\n", PATH: "/bin" };
    const { keys, secrets } = await takeSecrets(env, { providers });
    expect(Object.fromEntries(keys)).toEqual({ OPENAI_API_KEY: "openai-key", LOCAL_API_KEY: "local-key" });
    expect(secrets).toEqual(["openai-key", "local-key"]);
    expect(env).toEqual({ PATH: "/bin" });
  });

  test("are read from a file that the environment names", async () => {
    const file = keyFile("file-key\n");
    const env: Environment = { ANTHROPIC_API_KEY_FILE: file };
    const { keys, files } = await takeSecrets(env);
    expect(keys.get("ANTHROPIC_API_KEY")).toBe("file-key");
    expect(files).toEqual([file]);
    expect(env).toEqual({});
  });

  test("stay in the environment for a user's agent, and are still redacted", async () => {
    const env: Environment = { OPENAI_API_KEY: "openai-key" };
    expect((await takeSecrets(env, { agent: "/a.js" })).secrets).toEqual(["openai-key"]);
    expect(env).toEqual({ OPENAI_API_KEY: "openai-key" });
    expect((await takeSecrets(env, { acp: ["some-agent"] })).secrets).toEqual(["openai-key"]);
    expect(env).toEqual({ OPENAI_API_KEY: "openai-key" });
    const inFile = { OPENAI_API_KEY_FILE: keyFile("openai-key") };
    // The agent is a process itself and must be able to read the file.
    expect((await takeSecrets(inFile, { acp: ["some-agent"] })).files).toEqual([]);
  });

  test("that are short words are used and not redacted", async () => {
    const { keys, secrets } = await takeSecrets({ OPENAI_API_KEY: "none" });
    expect([keys.get("OPENAI_API_KEY"), secrets]).toEqual(["none", []]);
  });

  test.each([
    ["two lines", () => ({ OPENAI_API_KEY: "super-secret\nsuper-secret-2" })],
    ["an empty file", () => ({ OPENAI_API_KEY_FILE: keyFile("\n") })],
    ["a file that does not exist", () => ({ OPENAI_API_KEY_FILE: join(folder, "none") })],
    ["a file without an end", () => ({ OPENAI_API_KEY_FILE: "/dev/zero" })],
    ["both", () => ({ OPENAI_API_KEY: "super-secret", OPENAI_API_KEY_FILE: keyFile("super-secret-2") })],
  ])("that are invalid are refused with the name of the variable, without the key: %s", async (_, env) => {
    const error: unknown = await takeSecrets(env()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "invalid", message: expect.stringContaining("OPENAI_API_KEY") });
    expect(JSON.stringify([String(error), Reflect.get(Object(error), "hint")])).not.toContain("super-secret");
  });
});
