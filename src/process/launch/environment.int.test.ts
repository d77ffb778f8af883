import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { ARGUMENT_BYTES_MAX, ARGUMENT_OVERHEAD_BYTES } from "../../core/limits.ts";
import { COOKIE_CHARS_MAX, COOKIES_MAX, ENVIRONMENT_BYTES_MAX, ENVIRONMENT_NAMES_MAX } from "../limits.ts";
import {
  COOKIE_NAME,
  childEnvironment,
  cookiesIn,
  type EnvironmentOptions,
  isCookie,
  makeCookie,
} from "./environment.ts";

const cookie = makeCookie("proc_a.1", "r4nd0m");
const made = (options: Partial<EnvironmentOptions> = {}) => childEnvironment({ from: {}, cookie, ...options });

const refusal = (options: Partial<EnvironmentOptions>): ControlError => {
  try {
    made(options);
  } catch (error) {
    if (error instanceof ControlError) return error;
  }
  throw new Error("It was not refused.");
};

describe("from the server", () => {
  test("G35: only the variables on the list are inherited", () => {
    const from = { PATH: "/bin", HOME: "/h", LANG: "C", LC_ALL: "C", TZ: "UTC", SHELL: "/bin/zsh", USER: "u" };
    const secrets = { API_KEY: "canary", OPENAI_API_KEY: "canary", DATABASE_URL: "canary", FOO: "canary" };
    const env = made({ from: { ...from, ...secrets } });
    expect(env).toMatchObject(from);
    expect(JSON.stringify(env)).not.toContain("canary");
  });

  test("G35: a pattern matches no secret, a full name does", () => {
    const from = {
      ...{ AWS_REGION: "eu", AWS_SECRET_ACCESS_KEY: "canary", AWS_SESSION_TOKEN: "canary", AWS_Password: "canary" },
      ...{ AWS_CREDENTIALS: "canary", AWS_AUTH: "canary", AWS_AUTHOR: "ann", AWS_PRIVATE: "canary" },
    };
    expect(made({ from, allow: ["AWS_*"] })).toMatchObject({ AWS_REGION: "eu", AWS_AUTHOR: "ann" });
    expect(JSON.stringify(made({ from, allow: ["AWS_*", "A*"] }))).not.toContain("canary");
    expect(made({ from, allow: ["AWS_SESSION_TOKEN"] })).toMatchObject({ AWS_SESSION_TOKEN: "canary" });
  });

  test("G35: a pattern matches its prefix exactly", () => {
    const env = made({ from: { AWS_REGION: "eu", AXE: "x", AW: "x", "AWS_NOT A NAME": "x" }, allow: ["AWS_*"] });
    expect(Object.keys(env).filter((name) => name.startsWith("A"))).toEqual(["AWS_REGION"]);
    expect(refusal({ allow: ["A B*"] }).message).toContain('"A B*" must be the name of a variable');
  });

  test("a pattern matches no variable that affects the programs holding the child", () => {
    const env = made({ from: { LD_PRELOAD: "/x.so", LDX: "1", [COOKIE_NAME]: "nonsense" }, allow: ["L*", "BELAY_*"] });
    expect(env).toMatchObject({ LDX: "1", [COOKIE_NAME]: cookie });
    expect(made({ from: { HOME: undefined } })).not.toHaveProperty("HOME");
    expect(env).not.toHaveProperty("LD_PRELOAD");
  });

  test.each(["*", "", "A B", "A=B", "*_KEY", "A*B", "LD_PRELOAD", COOKIE_NAME])("%j cannot be allowed", (name) => {
    expect(refusal({ allow: [name] }).code).toBe("invalid");
  });
});

describe("a program of the user", () => {
  const from = { PATH: "/bin", SOME_API_KEY: "key", TERM: "xterm", EMPTY: "", "not a name": "x", LD_PRELOAD: "/x.so" };
  const ours = { BELAY_TOKEN: "canary", BELAY_SOCKET: "canary", [COOKIE_NAME]: "proc_o.1:outer" };

  test("G35: inherits everything except Belay's own variables, and those that affect the programs holding it", () => {
    expect(made({ from: { ...from, ...ours }, inherit: "all" })).toEqual({
      ...{ PATH: "/bin", SOME_API_KEY: "key", TERM: "xterm" },
      [COOKIE_NAME]: `proc_o.1:outer ${cookie}`,
    });
  });

  test("inherits another environment instead, and given variables override it", () => {
    const inherit = { ...ours, SOME_API_KEY: "other", HOME: "/elsewhere" };
    expect(made({ from, inherit, given: { HOME: "/given" } })).toEqual({
      ...{ PATH: "/bin", SOME_API_KEY: "other", HOME: "/given" },
      [COOKIE_NAME]: cookie,
    });
  });
});

describe("defaults", () => {
  test("programs do not prompt, and use no colours", {
    meta: { id: "process/non-interactive-environment" },
  }, () => {
    expect(made()).toMatchObject({
      ...{ TERM: "dumb", NO_COLOR: "1", CI: "1", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" },
      ...{ GIT_EDITOR: "true", EDITOR: "true", VISUAL: "true", DEBIAN_FRONTEND: "noninteractive" },
    });
  });

  test("a terminal has TERM and colours", () => {
    const env = made({ terminal: true });
    expect(env.TERM).toBe("xterm-256color");
    expect(env).not.toHaveProperty("NO_COLOR");
  });

  test("the server's own settings do not override them by a pattern", () => {
    expect(made({ from: { PAGER: "less", TERM: "xterm" }, allow: ["PAGER", "TERM"] })).toMatchObject({
      ...{ PAGER: "cat", TERM: "dumb" },
    });
  });

  test("FORCE_COLOR enables colours", () => {
    expect(made({ given: { FORCE_COLOR: "1" } })).not.toHaveProperty("NO_COLOR");
    expect(made({ given: { FORCE_COLOR: "1", NO_COLOR: "1" } }).NO_COLOR).toBe("1");
  });
});

describe("given", () => {
  test("given variables override all others", () => {
    expect(made({ from: { HOME: "/h" }, given: { HOME: "/g", CI: "", PATH: "/p" } })).toMatchObject({
      ...{ HOME: "/g", CI: "", PATH: "/p" },
    });
  });

  test("there is always a PATH", () => {
    expect(made().PATH).toContain("/usr/bin");
    expect(made({ from: { PATH: "" } }).PATH).toContain("/usr/bin");
    expect(made({ from: { PATH: "/s" }, given: { PATH: "" } }).PATH).toBe("/s");
  });

  test.each<readonly [Record<string, unknown>, string]>([
    [{ "": "x" }, "not a variable name"],
    [{ "1A": "x" }, "not a variable name"],
    [{ "A=B": "x" }, "not a variable name"],
    [{ "A\0": "x" }, "not a variable name"],
    [{ ["A".repeat(257)]: "x" }, "not a variable name"],
    [{ A: 1 }, "must be a string"],
    [{ A: "x\0y" }, "NUL"],
    [{ A: "\udc00" }, "well-formed"],
    [{ A: "x".repeat(ARGUMENT_BYTES_MAX) }, "takes less"],
    [Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`A${n}`, "x".repeat(100_000)])), "bytes; at most"],
    [Object.fromEntries(Array.from({ length: ENVIRONMENT_NAMES_MAX }, (_, n) => [`A${n}`, ""])), "variables; at most"],
    [{ [COOKIE_NAME]: "x" }, "cannot be set"],
  ])("%#: an invalid variable is refused", (given, why) => {
    expect(refusal({ given: given as Record<string, string> })).toMatchObject({
      ...{ code: "invalid", message: expect.stringContaining(why) },
    });
  });

  test.each(["LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB"])(
    "%s would affect the programs holding the child: it is refused, with an alternative",
    (name) => {
      expect(refusal({ given: { [name]: "x" } }).hint).toContain(`env ${name}=`);
    },
  );

  test("values at exactly every limit are accepted", () => {
    const names = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`A${n}`, ""]));
    expect(made({ given: { ...names, ["N".repeat(256)]: "x", LONG: "x".repeat(ARGUMENT_BYTES_MAX - 6) } }).A199).toBe(
      "",
    );
    const own = Object.keys(made()).length;
    const most = Object.fromEntries(Array.from({ length: ENVIRONMENT_NAMES_MAX - own }, (_, n) => [`A${n}`, ""]));
    expect(Object.keys(made({ given: most }))).toHaveLength(ENVIRONMENT_NAMES_MAX);
    expect(refusal({ given: { LONG: "x".repeat(ARGUMENT_BYTES_MAX - 5) } }).message).toContain("takes less");
  });

  test("the total counts with the system's overhead for each variable, to the byte", () => {
    const bytes = (env: Readonly<Record<string, string>>): number =>
      Object.entries(env).reduce(
        (sum, [name, value]) => sum + name.length + 1 + value.length + ARGUMENT_OVERHEAD_BYTES,
        0,
      );
    const piece = "x".repeat(100_000);
    const five = { A: piece, B: piece, C: piece, D: piece, E: piece };
    const room = ENVIRONMENT_BYTES_MAX - bytes(made({ given: { ...five, F: "" } }));
    expect(bytes(made({ given: { ...five, F: "x".repeat(room) } }))).toBe(ENVIRONMENT_BYTES_MAX);
    expect(refusal({ given: { ...five, F: "x".repeat(room + 1) } }).message).toContain("bytes; at most");
  });

  test("an invalid name is quoted up to 40 characters", () => {
    expect(refusal({ given: { [`${"-".repeat(60)}"`]: "x" } }).message).toBe(
      `"${"-".repeat(40)}" is not a variable name: use letters, digits and underscores, not starting with a digit.`,
    );
  });

  test("G35: no refusal repeats a value", () => {
    for (const value of ["canary\0", "canary\udc00", "canary".repeat(30_000)]) {
      const { message, hint } = refusal({ given: { A: value } });
      expect(message + hint).not.toContain("canary");
    }
  });
});

describe("the cookie", () => {
  test("is carried by a child, and can be read from /proc", () => {
    const { stdout } = spawnSync("/bin/cat", ["/proc/self/environ"], { env: made() });
    expect(cookiesIn(stdout)).toEqual([cookie]);
  });

  test("of an outer Belay is passed on, up to a depth", () => {
    expect(made({ from: { [COOKIE_NAME]: "proc_outer.1:x" } })[COOKIE_NAME]).toBe(`proc_outer.1:x ${cookie}`);
    const deep = Array.from({ length: 20 }, (_, n) => `proc_o.${n}:x`).join(" ");
    const carried = made({ from: { [COOKIE_NAME]: deep } })[COOKIE_NAME]?.split(" ");
    expect(carried).toHaveLength(COOKIES_MAX);
    expect(carried?.at(-1)).toBe(cookie);
  });

  test.each([
    [`A=1\0${COOKIE_NAME}=a\0B=2\0`, ["a"]],
    [`${COOKIE_NAME}=a`, ["a"]],
    [`X${COOKIE_NAME}=a\0`, []],
    [`A=${COOKIE_NAME}=a\0`, []],
    [`${COOKIE_NAME}=a\0${COOKIE_NAME}=b c\0`, ["a", "b", "c"]],
    [`${COOKIE_NAME}=${"x".repeat(100_000)}\0`, []],
    ["", []],
  ])("%#: only the value of the variable itself is a cookie", (environ, cookies) => {
    expect(cookiesIn(Buffer.from(environ))).toEqual(cookies);
  });

  test("a cookie contains no separator", () => {
    expect(isCookie(cookie)).toBe(true);
    for (const text of ["proc_a.1", "proc_a.1:", "proc_a.1:a b", "proc_a.1:a\0", "ses_a:b"]) {
      expect(isCookie(text)).toBe(false);
    }
    expect(() => makeCookie("proc_a.1", "a b")).toThrow(ControlError);
    expect(isCookie("x proc_a.1:b")).toBe(false);
    const longest = `proc_a.1:${"x".repeat(COOKIE_CHARS_MAX - 9)}`;
    expect([isCookie(longest), isCookie(`${longest}x`)]).toEqual([true, false]);
    // The maximum number of cookies of maximum length, with separators and one byte to spare.
    const all = new Array<string>(COOKIES_MAX).fill(longest);
    expect(cookiesIn(Buffer.from(`${COOKIE_NAME}=${all.join(" ")} \0`))).toEqual([...all, ""]);
  });
});
