import { describe, expect, test } from "vitest";
import { answerOf, MODEL_NAMES, modelsAt } from "../../test/fixtures/provider/models.ts";
import { startProvider } from "../../test/fixtures/provider/server.ts";
import { PROMPT_BYTES_MAX } from "../core/limits.ts";
import { type Json, promptBytes } from "../core/model/prompt.ts";
import { attachment, attachmentsOf, userWithAttachments } from "./attachment.ts";
import { providerPrompt } from "./model/provider-prompt.ts";
import { ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX } from "./tools/files/file-limits.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

describe("attachment()", () => {
  test.each([
    ["notes.md", bytes("# Hi"), { name: "notes.md", mediaType: "text/markdown", text: "# Hi" }],
    ["/tmp/x/a.unknown", bytes("hi"), { name: "a.unknown", mediaType: "text/plain", text: "hi" }],
    ["C:\\x\\Makefile", bytes(""), { name: "Makefile", mediaType: "text/plain", text: "" }],
    ["a.PNG", PNG, { name: "a.PNG", mediaType: "image/png", base64: "iVBORw0KGgo=" }],
    ["a.pdf", bytes("%PDF-1.7"), { name: "a.pdf", mediaType: "application/pdf", base64: "JVBERi0xLjc=" }],
    ["a.txt", PNG, { name: "a.txt", mediaType: "application/octet-stream", base64: "iVBORw0KGgo=" }],
    ["a.txt", bytes("a\0b"), { name: "a.txt", mediaType: "application/octet-stream", base64: "YQBi" }],
  ])("%s", (name, given, expected) => {
    const made = attachment(name, given);
    expect(made).toEqual(expected);
    expect(attachmentsOf({ attachments: [{ ...made }] })).toEqual([expected]);
  });

  test("the largest attachment fits into a prompt, and a larger one is refused", () => {
    const made = attachment("a.png", new Uint8Array(ATTACHMENT_BYTES_MAX));
    expect(promptBytes({ text: "look", data: { attachments: [{ ...made }] } })).toBeLessThan(PROMPT_BYTES_MAX);
    expect(() => attachment("a.png", new Uint8Array(ATTACHMENT_BYTES_MAX + 1))).toThrow("at most");
  });
});

describe("attachmentsOf()", () => {
  test.each<[Json | undefined]>([
    ...[[undefined], [null], [3], ["attachments"], [[]], [{}], [{ attachments: null }], [{ attachments: {} }]],
    [{ attachments: [null, 1, "x", [], {}, { name: "a" }] }],
    [{ attachments: [{ name: "", mediaType: "text/plain", text: "x" }] }],
    [{ attachments: [{ name: "a", mediaType: "text", text: "x" }] }],
    [{ attachments: [{ name: "a", mediaType: 'text/x" onload="', text: "x" }] }],
    [{ attachments: [{ name: "a", mediaType: "image/png", base64: "not base64" }] }],
    [{ attachments: [{ name: "a", mediaType: "image/png", base64: "AAAA", text: "both" }] }],
  ] as [Json | undefined][])("ignores data of another shape: %j", (data) => {
    expect(attachmentsOf(data)).toEqual([]);
  });

  test("returns at most ATTACHMENTS_MAX", () => {
    const one = { name: "a", mediaType: "text/plain", text: "x" };
    const attachments = Array.from({ length: ATTACHMENTS_MAX + 1 }, () => one);
    expect(attachmentsOf({ attachments })).toHaveLength(ATTACHMENTS_MAX);
  });
});

describe("attachments in a request", () => {
  test("a text is sent in a tag that it cannot close", () => {
    const data = { attachments: [{ name: 'a"<b>', mediaType: "text/plain", text: "x</attachment>y" }] };
    const [, part] = userWithAttachments({ text: "look", data });
    expect(part).toEqual({
      type: "text",
      text: '<attachment name="a\\"_b_" type="text/plain">\nx&lt;/attachment>y\n</attachment>',
    });
  });

  test("a file that no provider accepts is sent by name only", () => {
    const data = { attachments: [{ ...attachment("a.zip", Uint8Array.from([1, 0, 2])) }] };
    expect(userWithAttachments({ text: "look", data })[1]).toMatchObject({
      text: expect.stringContaining("About 3 bytes that cannot be shown to you."),
    });
  });

  test.each(MODEL_NAMES)("texts, pictures and PDF reach the provider: %s", async (name) => {
    const attachments = [
      { ...attachment("notes.md", bytes("the words")) },
      { ...attachment("a.png", PNG) },
      { ...attachment("a.pdf", bytes("%PDF-1.7")) },
    ];
    await using server = await startProvider([[{ text: "ok" }]]);
    const prompt = providerPrompt([{ role: "user", runId: "run_1", text: "look", data: { attachments } }], {
      toUser: userWithAttachments,
    });
    const parts = await answerOf(modelsAt(server.baseURL)[name], { prompt });
    const body = JSON.stringify(server.requests[0]?.body);
    expect(parts.filter(({ type }) => type === "error")).toEqual([]);
    for (const piece of ["look", "the words", "iVBORw0KGgo=", "JVBERi0xLjc="]) expect(body).toContain(piece);
    expect(server.violations).toEqual([]);
  });
});
