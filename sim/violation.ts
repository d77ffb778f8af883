/** A promise that a schedule has shown broken. */
export interface Violation {
  /** The guarantee it breaks. */
  readonly rule: string;
  readonly message: string;
}
