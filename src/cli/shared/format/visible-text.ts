// Shows exact text with its invisible characters escaped, for a user who approves what they read.

/**
 * Characters that are invisible or change how others are shown: control and format characters, separators other than
 * a plain space, fillers, variation selectors, private-use and unassigned characters, and lone surrogates.
 */
const HIDDEN = new RegExp(
  [
    "(?! )[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Zs}\\p{Co}\\p{Cn}\\p{Cs}]",
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0\\ufe00-\\ufe0f]",
  ].join("|"),
  "gu",
);

/** Combining marks that have no base character, or are stacked. */
const MARKS = /(?<=^|[\s"\p{Mn}\p{Me}])[\p{Mn}\p{Me}]/gu;

/** The text with each of these characters as `\u{…}`. No character is dropped; newlines can be kept. */
export function visibleText(text: string, lines: "kept" | "escaped" = "kept"): string {
  return text
    .replaceAll(HIDDEN, (found) => (lines === "kept" && found === "\n" ? found : escaped(found)))
    .replaceAll(MARKS, escaped);
}

const escaped = (found: string): string => `\\u{${(found.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}}`;
