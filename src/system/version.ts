// The version of the package. It is not read from package.json: in a bundle that file belongs to another package.
export const version = (): string => "0.1.0";
