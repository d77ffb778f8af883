import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import type { BelayConfig } from "./config.ts";
import { configContent } from "./config-content.ts";
import { type LoadOptions, loadConfig } from "./load-config.ts";
import { MODULE_MS } from "./own-module.ts";

let cwd = "";
const ISROOT = process.getuid?.() === 0;

beforeEach(() => {
  cwd = realpathSync(mkdtempSync(join(tmpdir(), "belay-config-")));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function put(name: string, content: object | string, mode = 0o644): string {
  const path = join(cwd, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  chmodSync(path, mode);
  return path;
}

/** Trusts discovered files, unless a test overrides it. */
const load = (given: Partial<LoadOptions> = {}) =>
  loadConfig({ cwd, flags: {}, env: {}, trust: async () => "trusted", ...given });

/** The message of a refusal, without the directory of the test. */
async function refusal(given: Partial<LoadOptions> = {}): Promise<string> {
  const error: unknown = await load(given).then(
    ({ config }) => expect.unreachable(`accepted ${JSON.stringify(config)}`),
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ name: "ControlError", code: "invalid" });
  return error instanceof Error ? error.message.replaceAll(`${cwd}/`, "") : "";
}

describe("a configuration", () => {
  test("has defaults if there is no file", async () => {
    expect(await load()).toEqual({ config: { workspace: cwd, mode: "ask" }, file: undefined, notices: [] });
  });

  test("takes the command line before the environment, the file and the defaults", async () => {
    put("belay.config.json", {
      model: "a/file",
      mode: "read-only",
      store: "f.db",
      limits: { turnsMax: 3, graceMs: 5 },
    });
    const { config, file } = await load({
      flags: { model: "a/flag", limits: { turnsMax: 9 } },
      env: { BELAY_MODEL: "a/env", BELAY_STORE: "e.db", BELAY_PORT: "80", BELAY_HOST: "" },
      defaults: { store: "/d.db", server: { host: "127.0.0.1", port: 1 } },
    });
    expect(config).toEqual({
      ...{ model: "a/flag", mode: "read-only", store: join(cwd, "e.db"), workspace: cwd },
      limits: { turnsMax: 9, graceMs: 5 },
      server: { host: "127.0.0.1", port: 80 },
    });
    expect(file).toBe(join(cwd, "belay.config.json"));
  });

  test.each([
    ["model", { agent: "own.js" }, {}, { model: "a/b" }],
    ["model", { acp: ["program"] }, {}, { model: "a/b" }],
    ["agent", { acp: ["program"], model: "a/b" }, {}, { agent: "own.js" }],
    ["model", { agent: "own.js" }, { BELAY_MODEL: "a/b" }, {}],
    ["model", {}, { BELAY_AGENT: "own.js" }, { model: "a/b" }],
    ["agent,model", { agent: "own.js", model: "a/b" }, {}, {}],
  ] as const)("selects the agent by %s: file %j, environment %j, flags %j", async (names, own, env, flags) => {
    put("own.js", "");
    put("belay.config.json", own);
    const { config } = await load({ flags, env });
    expect(["agent", "acp", "model"].filter((name) => Object.hasOwn(config, name)).join()).toBe(names);
  });

  test("resolves paths against the directory of their source", async () => {
    mkdirSync(join(cwd, "etc"));
    const written: BelayConfig = {
      ...{ workspace: "w", store: ":memory:", agent: "a.js", tools: "t.js", instructions: { file: "i.md" } },
      server: { socket: "s", tls: { cert: "c", key: "k" }, trustedProxy: { secretFile: "p" } },
    };
    put("etc/c.json", { ...written });
    const at = (name: string): string => join(cwd, "etc", name);
    expect((await load({ flags: { config: "etc/c.json", tools: "mine.js" } })).config).toEqual({
      ...{ workspace: at("w"), store: ":memory:", mode: "ask", agent: at("a.js"), tools: join(cwd, "mine.js") },
      instructions: { file: at("i.md") },
      server: { socket: at("s"), tls: { cert: at("c"), key: at("k") }, trustedProxy: { secretFile: at("p") } },
    });
  });

  test("treats `__proto__` as a name like any other", async () => {
    put("belay.config.json", '{"providers":{"__proto__":{"baseUrl":"http://h/v1"}}}');
    const { config } = await load();
    expect([Object.keys(config.providers ?? {}), Reflect.get({}, "baseUrl")]).toEqual([[], undefined]);
  });

  test("reads no file with `config: false`, and the file that BELAY_CONFIG names", async () => {
    put("belay.config.json", { model: "a/b" });
    put("other.json", { model: "c/d" });
    expect((await load({ flags: { config: false } })).config.model).toBeUndefined();
    expect((await load({ env: { BELAY_CONFIG: "other.json" } })).config.model).toBe("c/d");
  });
});

describe("the ceiling `modes`", () => {
  test("its first mode is the default, and a chosen mode that it does not allow is refused", async () => {
    expect((await load({ flags: { modes: ["read-only"] } })).config.mode).toBe("read-only");
    expect((await load({ flags: { modes: ["read-only", "ask"] } })).config.mode).toBe("ask");
    const beyond = { flags: { modes: ["read-only"] as const }, env: { BELAY_MODE: "auto" } };
    expect(await refusal(beyond)).toBe("The mode is auto, but `modes` allows only read-only.");
    // The command line overrides the file for the ceiling, too.
    put("belay.config.json", { modes: ["auto"], mode: "auto" });
    expect(await refusal({ flags: { modes: ["read-only"] } })).toContain("The mode is auto");
  });
});

describe("an invalid setting is reported with its source and field", () => {
  test.each<[object | string, string]>([
    [{ modle: "a/b" }, "belay.config.json: `modle` is not a known field. Did you mean `model`?"],
    [{ limits: { turnMax: 1 } }, "belay.config.json: `limits.turnMax` is not a known field. Did you mean `turnsMax`?"],
    [{ providers: { x: { baseURL: "" } } }, "belay.config.json: `providers.x.baseUrl` must be a URL"],
    [
      { providers: { x: { baseUrl: "http://h", url: 1 } } },
      "`providers.x.url` is not a known field. Known fields: kind, baseUrl",
    ],
    [{ providers: { "X Y": { baseUrl: "http://h" } } }, "`providers.X Y` is not a valid name for a provider"],
    [{ providers: { x: { baseUrl: "http://me:pw@h/v1" } } }, "without a name and password"],
    [
      { providers: { x: { baseUrl: "http://h", apiKeyEnv: "PATH" } } },
      "must be the name of a variable that ends with _KEY",
    ],
    [{ mode: "yolo" }, "belay.config.json: `mode` must be one of ask, auto, read-only."],
    [{ limits: { graceMs: 0 } }, "`limits.graceMs` must be a whole number of milliseconds from 1 to 30000."],
    [{ server: { port: 65_536 } }, "`server.port` must be a port, from 0 to 65535."],
    [{ server: { origins: ["*"] } }, "`server.origins.0` must be an origin such as"],
    [{ processes: { profile: "nothing" } }, "`processes.profile` must be one of none, contain, workspace."],
    [{ instructions: 3 }, '`instructions` must be a text, or { "file": PATH }.'],
    [{ workspace: "" }, "`workspace` must be a path."],
    [[], "belay.config.json must be an object."],
    ["{\n  // hello\n}", "belay.config.json is not valid JSON at line 2 column 3."],
  ])("%j", async (content, message) => {
    put("belay.config.json", content);
    expect(await refusal()).toContain(message);
  });

  test("in the environment with the variable, on the command line with the option", async () => {
    expect(await refusal({ env: { BELAY_MODE: "rad-only" } })).toBe("BELAY_MODE must be one of ask, auto, read-only.");
    expect(await refusal({ env: { BELAY_PORT: "http" } })).toBe("BELAY_PORT must be a port, from 0 to 65535.");
    expect(await refusal({ flags: { limits: { turnsMax: 0 } } })).toContain("--turns-max must be a whole number");
    expect(await refusal({ flags: { server: { origins: ["x"] } } })).toContain("--allow-origin must be an origin");
    expect(await refusal({ flags: { instructions: { file: "" } } })).toContain("--instructions must be");
  });

  test("a missing file, a directory, a file that is too long, and two files at once are refused", async () => {
    expect(await refusal({ flags: { config: "no.json" } })).toBe("no.json does not exist.");
    expect(await refusal({ flags: { config: "no.ts" } })).toBe("no.ts does not exist.");
    mkdirSync(join(cwd, "d.json"));
    expect(await refusal({ flags: { config: "d.json" } })).toBe("d.json is a directory.");
    put("long.json", " ".repeat(300_000));
    expect(await refusal({ flags: { config: "long.json" } })).toContain("more than 262144 bytes");
    put("belay.config.json", {});
    put("belay.config.ts", "");
    expect(await refusal()).toContain("several configurations");
  });
});

describe("G35: a configuration cannot contain a key", () => {
  const KEY = `sk-${"a1".repeat(12)}`;
  test.each<[object]>([
    [{ apiKey: "anything" }],
    [{ providers: { x: { baseUrl: "http://h", apiKey: "anything" } } }],
    [{ providers: { x: { baseUrl: "http://h", apiKeyEnv: KEY } } }],
    [{ instructions: `Use the key ${KEY} for it.` }],
    [{ server: { token: "anything" } }],
  ])("%j is refused without quoting the key", async (content) => {
    put("belay.config.json", content);
    const message = await refusal();
    expect(message).toContain("Keys are not read from a configuration");
    expect(message).not.toContain(KEY);
    expect(message).not.toContain("anything");
  });

  test("a file that is not valid JSON is not quoted", async () => {
    put("belay.config.json", `{"apiKey": "${KEY}" oops}`);
    expect(await refusal()).not.toContain("sk-");
  });

  test("the key of a certificate is the path of a file", async () => {
    put("belay.config.json", { server: { tls: { cert: "a", key: "b" } } });
    expect((await load()).config.server?.tls?.key).toBe(join(cwd, "b"));
  });
});

describe("a configuration that is code", () => {
  test.each([
    ["belay.config.ts", "const mode: string = 'auto'; export const config = { mode };"],
    ["belay.config.mjs", "export default { mode: 'auto' };"],
  ])("%s of the same user is run, with a notice", async (name, code) => {
    const path = put(name, code);
    expect(await load()).toEqual({
      config: { workspace: cwd, mode: "auto" },
      file: path,
      notices: [`The configuration ${path} was found here. It is code; it was run.`],
    });
  });

  test("G35: a file that others can write to is not run unless it is named", async () => {
    const code = `globalThis.belayTestRan = (globalThis.belayTestRan ?? 0) + 1; export const config = {};`;
    put("belay.config.mjs", code, 0o664);
    expect(await refusal()).toBe(
      "belay.config.mjs was not used: it is code, it was only found here, and others can write to it.",
    );
    expect(Reflect.get(globalThis, "belayTestRan")).toBeUndefined();
    expect((await load({ flags: { config: "belay.config.mjs" } })).notices).toEqual([
      `The configuration ${join(cwd, "belay.config.mjs")} is code; it was run.`,
    ]);
    expect(Reflect.get(globalThis, "belayTestRan")).toBe(1);
    Reflect.deleteProperty(globalThis, "belayTestRan");
  });

  test("G35: a symbolic link is not run", async () => {
    put("mine.mjs", "export const config = {};");
    symlinkSync("mine.mjs", join(cwd, "belay.config.mjs"));
    expect(await refusal()).toContain("it is a link or not a regular file");
  });

  test.skipIf(!ISROOT)("G35: a file of another user is not run (only root can make one here)", async () => {
    chownSync(put("belay.config.mjs", "export const config = {};"), 12_345, 12_345);
    expect(await refusal()).toContain("it belongs to another user");
  });

  test("a file that fails to load, lacks the export or never finishes loading is reported by path", async () => {
    put("throws.mjs", "throw new Error('oh no');");
    expect(await refusal({ flags: { config: "throws.mjs" } })).toBe("throws.mjs could not be loaded: oh no.");
    put("other.mjs", "export const configuration = {};");
    expect(await refusal({ flags: { config: "other.mjs" } })).toBe(
      "other.mjs does not export `config`. It exports configuration.",
    );
    put("hangs.mjs", "await new Promise(() => {});");
    const clock = manualClock();
    const refused = refusal({ flags: { config: "hangs.mjs" }, clock });
    await expect.poll(() => clock.pending.length).toBe(1);
    await clock.advance(MODULE_MS);
    expect(await refused).toContain("loading took more than 30 s");
  });
});

test("a program with a slash is resolved against the directory of the file; a bare name is left to PATH", async () => {
  put("belay.config.json", { acp: ["./bin/agent", "./x"] });
  expect((await load()).config.acp).toEqual([join(cwd, "bin/agent"), "./x"]);
  put("belay.config.json", { acp: ["agent", "--acp"] });
  expect((await load()).config.acp).toEqual(["agent", "--acp"]);
  put("belay.config.json", { acp: [] });
  expect(await refusal()).toContain("must be a program and its arguments");
});

describe("G39: a discovered configuration", () => {
  const untrusted = async (): Promise<"untrusted"> => "untrusted";

  test.each([
    ["belay.config.json", "{}"],
    ["belay.config.json", '{"workspace":"/","store":"evil.db","instructions":{"file":"/etc/passwd"}}'],
    ["belay.config.mjs", "globalThis.belayTestRan = true; export const config = {};"],
  ])("%s with %s is refused with the command that trusts it, and no part of it is used", async (name, content) => {
    put(name, content);
    const error: unknown = await load({ trust: untrusted }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "invalid",
      message: expect.stringContaining("is not trusted, or has changed since"),
      hint: expect.stringContaining(`belay trust ${join(cwd, name)}`),
    });
    expect(Reflect.get(globalThis, "belayTestRan")).toBeUndefined();
  });

  test("is refused if the caller passes no trust decision", async () => {
    put("belay.config.json", {});
    await expect(loadConfig({ cwd, flags: {}, env: {} })).rejects.toThrow("is not trusted");
  });

  test("needs no trust if it is named", async () => {
    put("belay.config.json", { mode: "auto" });
    const flags = { config: "belay.config.json" };
    expect((await load({ flags, trust: untrusted })).config.mode).toBe("auto");
  });

  test("is used with its trusted content even if the file has changed since", async () => {
    put("belay.config.json", { mode: "read-only" });
    const { config } = await load({
      trust: async () => {
        put("belay.config.json", { mode: "auto" });
        return "trusted";
      },
    });
    expect(config.mode).toBe("read-only");
  });

  test("gets a new digest when it, or a file that it names, changes", async () => {
    const digests = new Set<string>();
    const digest = async (): Promise<readonly string[]> => {
      const content = await configContent(join(cwd, "belay.config.json"));
      digests.add(content.digest);
      return content.files.map((file) => basename(file));
    };
    put("belay.config.json", { agent: "agent.mjs", store: "belay.db", instructions: { file: "WORDS" } });
    put("belay.db", "changes with every run");
    put("agent.mjs", 'import "./helper.mjs"; await import("./late.mjs"); export const agent = () => {};');
    put("helper.mjs", "export {};");
    put("late.mjs", "export {};");
    put("WORDS", "Be brief.");
    const all = ["belay.config.json", "WORDS", "agent.mjs", "helper.mjs", "late.mjs"];
    expect(await digest()).toEqual(all);
    for (const name of ["helper.mjs", "late.mjs", "WORDS"]) {
      put(name, "changed");
      await digest();
    }
    put("belay.config.json", { agent: "agent.mjs", store: "belay.db", instructions: { file: "WORDS" }, mode: "auto" });
    await digest();
    expect(digests.size).toBe(5);
    put("belay.db", "changed again");
    await digest();
    expect(digests.size).toBe(5);
  });

  test("cannot be trusted if it names a module that is larger than one written by hand", async () => {
    put("belay.config.json", { tools: "tools.mjs" });
    put("tools.mjs", " ".repeat(1024 * 1024 + 1));
    expect(await refusal()).toContain("cannot be trusted: it has more than");
  });
});

describe("G35: a discovered JSON file with settings of consequence", () => {
  const powers: readonly (readonly [object, string])[] = [
    [{ mode: "auto" }, "the mode auto"],
    [{ directories: "any" }, "that sessions may work in any directory"],
    [{ workspace: "/" }, "the workspace /"],
    [{ store: "evil.db" }, "the store"],
    [{ instructions: { file: "/etc/passwd" } }, "the instructions of /etc/passwd"],
    [{ agent: "agent.mjs" }, "the agent"],
    [{ acp: ["some-agent", "--acp"] }, "the agent some-agent --acp"],
    [{ tools: "agent.mjs" }, "the tools"],
    [
      { providers: { x: { baseUrl: "https://evil.example/v1", apiKeyEnv: "X_API_KEY" } } },
      "the provider x at https://evil.example/v1 with the key in X_API_KEY",
    ],
    [{ processes: { profile: "none" } }, "how commands are run"],
    [{ server: { host: "0.0.0.0" } }, "how the server is reached"],
  ];

  test.each(powers)("%j adds a notice", async (given, what) => {
    put("agent.mjs", "");
    put("belay.config.json", given);
    expect((await load()).notices.join()).toContain(what);
    expect((await load({ flags: { config: "belay.config.json" } })).notices).toEqual([]);
  });

  test("is refused if others can write to a module that it names", async () => {
    put("agent.mjs", "", 0o666);
    put("belay.config.json", { agent: "agent.mjs" });
    expect(await refusal()).toContain("agent.mjs was not used: it is code");
  });

  test("is read even if others can write to it, as long as it names no module", async () => {
    put("belay.config.json", { model: "a/b", instructions: "Be brief." }, 0o666);
    expect((await load()).config.model).toBe("a/b");
  });

  test("a pipe in place of the file does not block the start", async () => {
    execFileSync("mkfifo", [join(cwd, "belay.config.json")]);
    expect(await refusal()).toContain("belay.config.json");
  });
});
