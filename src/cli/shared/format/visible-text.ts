// The exact text, with everything in it that an eye would miss: for whoever decides by what they read.

/**
 * What is invisible, turns the direction of a line, joins or hides: control and format characters, separators that
 * are no plain space, fillers, selectors of variants, private and unassigned ones, and halves of pairs.
 */
const HIDDEN = new RegExp(
  [
    "(?! )[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Zs}\\p{Co}\\p{Cn}\\p{Cs}]",
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0\\ufe00-\\ufe0f]",
  ].join("|"),
  "gu",
);

/** Marks that are put onto the character before them; on nothing, or piled up, they hide. */
const MARKS = /(?<=^|[\s"\p{Mn}\p{Me}])[\p{Mn}\p{Me}]/gu;

/** The same text with each of them as `\u{…}`. Nothing is dropped; the ends of lines can be kept as they are. */
export function visibleText(text: string, lines: "kept" | "escaped" = "kept"): string {
  return text
    .replaceAll(HIDDEN, (found) => (lines === "kept" && found === "\n" ? found : escaped(found)))
    .replaceAll(MARKS, escaped);
}

const escaped = (found: string): string => `\\u{${(found.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}}`;
