// The encodings in which a secret can appear: plain, base64, URL-encoded, inside JSON. Pure.

/** `exact` forms match literally. The ends of a `base64` form depend on the bytes beside the secret. */
export interface SecretForms {
  readonly exact: readonly string[];
  readonly base64: readonly string[];
}

export function secretForms(secret: string): SecretForms {
  const wellFormed = secret.toWellFormed();
  return {
    exact: [...new Set([secret, ...inJson(wellFormed), ...inUrl(wellFormed)])],
    base64: [...new Set(inBase64(wellFormed).flatMap((one) => [one, urlSafe(one)]))],
  };
}

/** Escaped once and twice: JSON inside a log line is escaped again. */
function inJson(secret: string): readonly string[] {
  const once = escaped(secret);
  const forms = [once, escaped(once), ascii(once), escaped(ascii(once))];
  // Some serializers escape the slash, too.
  return forms.flatMap((one) => [one, one.replaceAll("/", "\\/")]);
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** The output of serializers that write only ASCII. */
const ascii = (text: string): string =>
  text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Encoders differ in which punctuation they escape, in the case of hex digits, and in how they encode a space. */
function inUrl(secret: string): readonly string[] {
  const lenient = encodeURIComponent(secret);
  const strict = lenient.replace(/[!'()*~]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const forms = [lenient, strict, lenient.replaceAll("%20", "+"), strict.replaceAll("%20", "+")];
  return forms.flatMap((one) => [one, one.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]);
}

/**
 * Base64 encodes groups of three bytes, so a secret inside a longer text has one of three encodings. Only the
 * characters that depend on the secret alone are searched for.
 */
function inBase64(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, "utf8");
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}

const urlSafe = (text: string): string => text.replaceAll("+", "-").replaceAll("/", "_");
