// The version of the package. Written here and not read from a file: in a bundle, the file beside us is another's.
export const version = (): string => "0.1.0";
