import { expect, test } from "vitest";
import { type Greeting, greet, shellQuoted } from "./serve-greeting.ts";

const greeting: Greeting = {
  ...{ version: "1.2.3", url: "http://127.0.0.1:1", socket: "/h/belay.sock", instead: undefined, store: "/h/belay.db" },
  ...{ agent: "demo agent", notices: ["It is a demo."], mode: "ask", workspace: "/w", tier: "namespace" },
  ...{ tokenFile: "/it's here/token", belay: "belay", options: "--home /h", prompt: "count to 30", onStop: "park" },
} as const;

test("in a pipe each fact is on its own line, without colours", () => {
  expect(greet(greeting, false)).toEqual([
    "Belay 1.2.3 is ready.",
    "listens: http://127.0.0.1:1",
    "socket: /h/belay.sock",
    "store: /h/belay.db",
    "agent: demo agent",
    "note: It is a demo.",
    "mode: ask",
    "workspace: /w",
    "processes: held by tier namespace; belay doctor says more",
    "token: /it's here/token",
    `log in: curl -H "Authorization: Bearer $(cat '/it'\\''s here/token')" http://127.0.0.1:1/v1/status`,
    "try: belay run --home /h 'count to 30'",
    "try: belay ps --home /h",
    "try: belay stop-all --home /h --yes",
  ]);
});

test("the mode is left out for an agent without modes", () => {
  expect(greet({ ...greeting, mode: undefined }, false).join("\n")).not.toContain("mode");
});

test("without a port there is no login line; a default port that was taken is named", () => {
  expect(greet({ ...greeting, url: undefined }, false).join("\n")).not.toMatch(/listens|log in|token/);
  expect(greet({ ...greeting, instead: 23_529 }, false)[1]).toContain("(port 23529 is taken by another program)");
});

test("it says what Ctrl-C does to running work", () => {
  expect(greet(greeting, true).at(-1)).toContain("parked until the next start");
  expect(greet({ ...greeting, onStop: "cancel" }, true).at(-1)).toContain("is cancelled");
});

test.each([
  ["/plain/path-1.db", "/plain/path-1.db"],
  ["two words", "'two words'"],
  ["it's", `'it'\\''s'`],
  ["$(rm -rf)", "'$(rm -rf)'"],
  ["", "''"],
])("%j is quoted for a shell as %s", (text, quoted) => {
  expect(shellQuoted(text)).toBe(quoted);
});

test.each(["cgroup", "anchor", "group"] as const)(
  "a note warns of a tier in which commands reach Belay's own files: %s",
  (tier) => {
    const lines = greet({ ...greeting, tier }, false);
    expect(lines).toContainEqual(
      expect.stringContaining(`note: commands of tier ${tier} can reach Belay's own files and processes`),
    );
    expect(greet(greeting, false).join("\n")).not.toContain("can reach Belay's own files");
  },
);
