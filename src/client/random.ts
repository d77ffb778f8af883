// The client's only randomness: unique keys, and jitter of its pauses.

export interface Random {
  /** An idempotency key that was never used before. */
  key(): string;
  /** A number from 0 up to 1. */
  fraction(): number;
}

const KEY_BYTES = 16;

export const webRandom: Random = {
  key() {
    const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    return `cli_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  },
  fraction() {
    const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
    return random / 2 ** 32;
  },
};
