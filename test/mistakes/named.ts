// One of several known mistakes, by its name.

export function named<M extends { readonly name: string }>(mistakes: readonly M[], name: string): M {
  const found = mistakes.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no known mistake ${name}.`);
  return found;
}
