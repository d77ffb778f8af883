import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Hosts, parseAuthority } from "./host.ts";

describe("a Host header", () => {
  test.each([
    ["127.0.0.1:7777", { name: "127.0.0.1", port: 7777 }],
    ["LOCALHOST", { name: "localhost", port: undefined }],
    ["[::1]:80", { name: "[::1]", port: 80 }],
    ["belay.example.com", { name: "belay.example.com", port: undefined }],
  ])("%s is parsed", (text, authority) => {
    expect(parseAuthority(text)).toEqual(authority);
  });

  test.each([
    ...["", ".", "localhost.", "localhost.:80", "localhost:", "localhost:0", "localhost:080", "localhost:65536"],
    ...["localhost:80:80", "a b", "user@localhost", "localhost/", "localhost?", "localhost#", "127.0.0.1, evil.com"],
    ...["::1", "[::1", "::1]", "[::1]evil", "[::1].evil.com", "-a", "a-", "a..b", "localhost\t", " localhost"],
    ...["loca\u212Ahost", "localhost:\u0661", "http://localhost", "localhost:80@evil.com", "[fe80::1%25eth0]"],
  ])("%j is invalid", (text) => {
    expect(parseAuthority(text)).toBeUndefined();
  });

  test("of 15,000 random texts is invalid, or parsed into exactly its name and port", () => {
    const piece = fc.constantFrom(
      "localhost",
      "127.0.0.1",
      "[::1]",
      ":",
      "80",
      ".",
      "@",
      "/",
      "evil.com",
      ",",
      " ",
      "%",
    );
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.array(piece, { maxLength: 8 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (input) => {
        const found = parseAuthority(input);
        if (found === undefined) return;
        expect(found.port === undefined ? found.name : `${found.name}:${found.port}`).toBe(input.toLowerCase());
      }),
      { numRuns: 15_000 },
    );
  });
});

describe("the names of a server", () => {
  const hosts = new Hosts(["belay.example.com", "proxy.example.com:8443", "localhost:9000"]);
  hosts.serves({ scheme: "http", port: 7777 });

  test.each([
    ["127.0.0.1:7777", "http://127.0.0.1:7777"],
    ["localhost:7777", "http://localhost:7777"],
    ["[::1]:7777", "http://[::1]:7777"],
    ["LocalHost:7777", "http://localhost:7777"],
    ["belay.example.com", "http://belay.example.com"],
    ["belay.example.com:7777", "http://belay.example.com:7777"],
    ["proxy.example.com:8443", "http://proxy.example.com:8443"],
    ["localhost:9000", "http://localhost:9000"],
  ])("include %s over TCP", (host, origin) => {
    expect(hosts.originOf(host, "tcp")).toBe(origin);
  });

  test.each([
    ...["127.0.0.1", "localhost", "127.0.0.1:7778", "localhost:80", "0.0.0.0:7777", "127.1:7777", "127.0.0.2:7777"],
    ...["2130706433:7777", "0x7f.0.0.1:7777", "[0:0:0:0:0:0:0:1]:7777", "[::ffff:127.0.0.1]:7777", "evil.com"],
    ...["evil.com:7777", "127.0.0.1.evil.com:7777", "localhost.evil.com:7777", "evil.com.localhost:7777"],
    ...["xbelay.example.com", "belay.example.com.evil.com", "belay.example.com:7778", "proxy.example.com"],
    ...["proxy.example.com:7777", "127.0.0.1:7777, evil.com", "evil.com@127.0.0.1:7777"],
  ])("do not include %s", (host) => {
    expect(hosts.originOf(host, "tcp")).toBeUndefined();
  });

  test("do not include a missing header, on any transport", () => {
    for (const via of ["tcp", "socket", "fetch"] as const) expect(hosts.originOf(undefined, via)).toBeUndefined();
  });

  test("behind a socket or in a framework match with any port, but other names do not", () => {
    for (const via of ["socket", "fetch"] as const) {
      expect(hosts.originOf("localhost", via)).toBe("http://localhost");
      expect(hosts.originOf("127.0.0.1:3000", via)).toBe("http://127.0.0.1:3000");
      expect(hosts.originOf("belay.example.com", via)).toBe("https://belay.example.com");
      expect(hosts.originOf("evil.com:3000", via)).toBeUndefined();
      expect(hosts.originOf("localhost.evil.com", via)).toBeUndefined();
    }
  });

  test("are empty over TCP before a port is served", () => {
    expect(new Hosts(["belay.example.com"]).originOf("belay.example.com", "tcp")).toBeUndefined();
  });

  test("on port 80 match without a port, and the origin has none", () => {
    const plain = new Hosts([]);
    plain.serves({ scheme: "http", port: 80 });
    expect(plain.originOf("localhost", "tcp")).toBe("http://localhost");
    expect(plain.originOf("localhost:80", "tcp")).toBe("http://localhost");
    expect(plain.originOf("localhost:443", "tcp")).toBeUndefined();
  });

  test("are refused in the configuration if they are not host names", () => {
    for (const name of ["*", "*.example.com", "https://belay.example.com", "belay.example.com/", ""]) {
      expect(() => new Hosts([name])).toThrow(/not a host name/);
    }
  });
});
