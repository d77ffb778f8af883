import { expect, test } from "vitest";
import { promptOf } from "./prompt-content.ts";

test("texts are joined in order, a line each", () => {
  expect(
    promptOf([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]),
  ).toEqual({ text: "a\nb" });
});

test("a link is named with its address", () => {
  expect(promptOf([{ type: "resource_link", name: "a.ts", uri: "file:///w/a.ts" }])).toEqual({
    text: "[a.ts](file:///w/a.ts)",
  });
});

test("an embedded file is attached, and named at its place", () => {
  const text = { uri: "file:///w/a.txt", text: "hello" };
  const blob = { uri: "file:///w/b.bin", blob: "AAAA", mimeType: "image/png" };
  const prompt = promptOf([
    { type: "resource", resource: text },
    { type: "text", text: "look" },
    { type: "resource", resource: blob },
  ]);
  expect(prompt).toEqual({
    text: "[a.txt](file:///w/a.txt)\nlook\n[b.bin](file:///w/b.bin)",
    data: {
      attachments: [
        { name: "a.txt", mediaType: "text/plain", text: "hello" },
        { name: "b.bin", mediaType: "image/png", base64: "AAAA" },
      ],
    },
  });
});

test("a picture alone is a valid prompt", () => {
  expect(promptOf([{ type: "image", data: "AAAA", mimeType: "image/png" }])).toEqual({
    text: "",
    data: { attachments: [{ name: "image", mediaType: "image/png", base64: "AAAA" }] },
  });
});

test.each([
  ["nothing", []],
  ["a text without a letter", [{ type: "text", text: "" }]],
  ["sound", [{ type: "audio", data: "", mimeType: "audio/wav" }]],
  ["an unknown kind", [{ type: "hologram" }]],
])("%s is refused", (_, blocks) => {
  expect(() => promptOf(blocks)).toThrow(expect.objectContaining({ code: -32602 }));
});
