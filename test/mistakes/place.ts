// A node of the source that a known mistake edits: how to get from it to its parts, and what can become of them.
// Parts are named by what they are (the condition, the second operand, the literal "keep"), never by identifiers, so a
// rename changes nothing. Every step states what it expects and throws if the source is different: a mistake that does
// not apply any more must fail, and not edit something else.
import ts from "typescript";

/** `text` replaces what stands between two offsets of the file. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export function applyChanges(text: string, changes: readonly Change[]): string {
  const sorted = changes.toSorted((one, two) => two.start - one.start || two.end - one.end);
  for (const [index, { start }] of sorted.entries()) {
    const before = sorted[index + 1];
    if (before !== undefined && before.end > start) throw new Error("two changes of one mistake overlap");
  }
  return sorted.reduce((left, { start, end, text: put }) => left.slice(0, start) + put + left.slice(end), text);
}

export class Place {
  readonly #source: ts.SourceFile;
  readonly node: ts.Node;

  constructor(source: ts.SourceFile, node: ts.Node) {
    this.#source = source;
    this.node = node;
  }

  get path(): string {
    return this.#source.fileName;
  }

  get where(): string {
    return `${this.path}:${this.#source.getLineAndCharacterOfPosition(this.node.getStart()).line + 1}`;
  }

  get text(): string {
    return this.node.getText(this.#source);
  }

  // Parts

  /** Of an if, a loop or `a ? b : c`. */
  condition(): Place {
    const { node } = this;
    if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) return this.#at(node.expression);
    if (ts.isConditionalExpression(node)) return this.#at(node.condition);
    return this.#fail("has a condition");
  }

  /** What happens if the condition of an if or of `a ? b : c` holds. */
  whenTrue(): Place {
    if (ts.isIfStatement(this.node)) return this.#at(this.node.thenStatement);
    if (ts.isConditionalExpression(this.node)) return this.#at(this.node.whenTrue);
    return this.#fail("has a branch");
  }

  /** What happens if it does not. */
  whenFalse(): Place {
    if (ts.isIfStatement(this.node) && this.node.elseStatement) return this.#at(this.node.elseStatement);
    if (ts.isConditionalExpression(this.node)) return this.#at(this.node.whenFalse);
    return this.#fail("has an else");
  }

  /** What is returned, thrown, awaited, assigned, evaluated, spread, iterated over or initially stored. */
  value(): Place {
    const { node } = this;
    const value = initialOf(node);
    return value === undefined ? this.#fail("has a value") : this.#at(value);
  }

  /** One operand of a chain of `&&`, `||` or `??`, which must have `of` of them. */
  operand(index: number, of: number): Place {
    const chain = bare(this.node);
    if (!ts.isBinaryExpression(chain)) return this.#fail("is a chain of operands");
    return this.#pick(flatten(chain, chain.operatorToken.kind), index, of, "operands");
  }

  /** The side before the operator of a comparison, a sum, an assignment. */
  left(): Place {
    const node = bare(this.node);
    return ts.isBinaryExpression(node) ? this.#at(node.left) : this.#fail("has two sides");
  }

  /** The side behind it. */
  right(): Place {
    const node = bare(this.node);
    return ts.isBinaryExpression(node) ? this.#at(node.right) : this.#fail("has two sides");
  }

  /** An element of an array, a property of an object, a statement of a block; there must be `of` of them. */
  part(index: number, of: number): Place {
    const node = bare(this.node);
    if (ts.isArrayLiteralExpression(node)) return this.#pick(node.elements, index, of, "elements");
    if (ts.isObjectLiteralExpression(node)) return this.#pick(node.properties, index, of, "properties");
    if (ts.isBlock(node) || ts.isCaseOrDefaultClause(node)) return this.#pick(node.statements, index, of, "statements");
    return this.#fail("has parts");
  }

  /** An argument of a call or `new`, which must have `of` of them. */
  arg(index: number, of: number): Place {
    const node = bare(this.node);
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return this.#fail("is a call");
    return this.#pick(node.arguments ?? [], index, of, "arguments");
  }

  /** `a.b` of `a.b(c)`. */
  callee(): Place {
    const node = bare(this.node);
    return ts.isCallExpression(node) ? this.#at(node.expression) : this.#fail("is a call");
  }

  /** `a` of `a.b` and of `a.b(c)`. */
  target(): Place {
    const node = bare(this.node);
    const access = ts.isCallExpression(node) ? node.expression : node;
    if (!ts.isPropertyAccessExpression(access) && !ts.isElementAccessExpression(access)) {
      return this.#fail("is a property of something");
    }
    return this.#at(access.expression);
  }

  /** The only literal of this value in it, itself included: a string, a number, `true` or `false`. */
  literal(value: string | number | boolean): Place {
    return this.find((node) => literalOf(node) === value, `the literal ${JSON.stringify(value)}`);
  }

  /** The only node in it, itself included, that passes. `what` says what is looked for. */
  find(passes: (node: ts.Node) => boolean, what: string): Place {
    return this.findOne(passes, 0, 1, what);
  }

  /** One of the nodes in it, itself included, that pass, by their order in the source; there must be `of` of them. */
  findOne(passes: (node: ts.Node) => boolean, index: number, of: number, what: string): Place {
    const found: ts.Node[] = [];
    const visit = (node: ts.Node): void => {
      if (passes(node)) found.push(node);
      node.forEachChild(visit);
    };
    visit(this.node);
    return this.#pick(found, index, of, `times ${what}`);
  }

  /** Body of a function, method or arrow. */
  body(): Place {
    const { node } = this;
    const body = ts.isFunctionLike(node) && "body" in node ? node.body : undefined;
    return body === undefined ? this.#fail("has a body") : this.#at(body);
  }

  /** The function, method or arrow around it. `levels` above 1: the function around that one, and so on. */
  around(levels = 1): Place {
    let node: ts.Node = this.node;
    for (let level = 0; level < levels; level += 1) {
      do node = node.parent;
      while (node !== undefined && !ts.isFunctionLike(node));
      if (node === undefined) return this.#fail("is in a function");
    }
    return this.#at(node);
  }

  /**
   * A parameter of the function around it, as an expression: its name or, if it is taken apart, the name of one of its
   * parts by their order.
   */
  param(index: number, part?: number): string {
    const holder = ts.isFunctionLike(this.node) ? this.node : this.around().node;
    const name = ts.isFunctionLike(holder) ? holder.parameters[index]?.name : undefined;
    if (name === undefined) return this.#fail(`has a parameter ${index}`);
    if (ts.isIdentifier(name)) return name.text;
    const element = part === undefined ? undefined : name.elements[part];
    if (element === undefined || ts.isOmittedExpression(element) || !ts.isIdentifier(element.name)) {
      return this.#fail(`has a part ${part} of parameter ${index}`);
    }
    return element.name.text;
  }

  /** The name that a `const`, a function or a class member declares. */
  name(): string {
    const { node } = this;
    const declared = ts.isVariableStatement(node) ? node.declarationList.declarations[0] : node;
    const name = declared === undefined ? undefined : ts.getNameOfDeclaration(declared as ts.Declaration);
    return name !== undefined && (ts.isIdentifier(name) || ts.isPrivateIdentifier(name))
      ? name.text
      : this.#fail("declares a name");
  }

  // Changes

  become(text: string): Change {
    return { start: this.node.getStart(), end: this.node.end, text };
  }

  /** A statement or member goes; an element or property goes with its comma. */
  remove(): Change {
    const { node } = this;
    const start = node.getStart();
    if (ts.isStatement(node)) return { start, end: node.end, text: ";" };
    if (ts.isClassElement(node) || ts.isCaseOrDefaultClause(node)) return { start, end: node.end, text: "" };
    const comma = /^\s*,/.exec(this.#source.text.slice(node.end))?.[0].length ?? 0;
    return { start, end: node.end + comma, text: "" };
  }

  /** An operand of a chain goes: `a && b && c` becomes `a && c`. */
  drop(): Change {
    const { node } = this;
    const { parent } = node;
    if (!ts.isBinaryExpression(parent)) return this.#fail("is an operand");
    if (parent.right === node) return { start: parent.left.end, end: node.end, text: "" };
    return { start: node.getStart(), end: parent.right.getStart(), text: "" };
  }

  /** In a string, a template or a regular expression: `from`, which must be there once, becomes `to`. */
  swap(from: string, to: string): Change {
    const { node } = this;
    const isText = ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || ts.isRegularExpressionLiteral(node);
    if (!isText) return this.#fail("is a text");
    if (this.text.split(from).length !== 2) return this.#fail(`contains ${JSON.stringify(from)} once`);
    const start = node.getStart() + this.text.indexOf(from);
    return { start, end: start + from.length, text: to };
  }

  before(text: string): Change {
    const start = this.node.getStart();
    return { start, end: start, text };
  }

  after(text: string): Change {
    return { start: this.node.end, end: this.node.end, text };
  }

  #at(node: ts.Node): Place {
    return new Place(this.#source, node);
  }

  #pick(nodes: readonly ts.Node[], index: number, of: number, what: string): Place {
    const node = nodes[index];
    if (nodes.length === of && node !== undefined) return this.#at(node);
    throw new Error(`"${this.#short()}" has ${nodes.length} ${what}, not ${of}`);
  }

  #fail(expected: string): never {
    throw new Error(`"${this.#short()}" was expected to be something that ${expected}`);
  }

  #short(): string {
    return this.text.replaceAll(/\s+/g, " ").slice(0, 80);
  }
}

/**
 * Code of a mistake that uses names of the source, as a call of a function that is written out in the source. It is
 * TypeScript that the compiler checks and a rename reaches. It must use nothing but its parameters and globals.
 */
export function inline<A extends readonly never[]>(
  code: (...args: A) => unknown,
  ...args: readonly (string | Place)[]
) {
  const given = args.map((one) => (typeof one === "string" ? one : one.text)).join(", ");
  return `(${code.toString()})(${given})`;
}

/** Without the parentheses around it. */
function bare(node: ts.Node): ts.Node {
  return ts.isParenthesizedExpression(node) ? bare(node.expression) : node;
}

function flatten(node: ts.Node, operator: ts.SyntaxKind): readonly ts.Node[] {
  const isLink = ts.isBinaryExpression(node) && node.operatorToken.kind === operator;
  return isLink ? [...flatten(node.left, operator), node.right] : [node];
}

function literalOf(node: ts.Node): string | number | boolean | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isNumericLiteral(node)) return Number(node.text);
  if (node.kind === ts.SyntaxKind.TrueKeyword) return true;
  return node.kind === ts.SyntaxKind.FalseKeyword ? false : undefined;
}

function initialOf(node: ts.Node): ts.Node | undefined {
  if (ts.isVariableStatement(node)) {
    const [only, ...others] = node.declarationList.declarations;
    return others.length === 0 ? only?.initializer : undefined;
  }
  if (ts.isPropertyAssignment(node) || ts.isPropertyDeclaration(node)) return node.initializer;
  if (ts.isArrowFunction(node)) return node.body;
  if (ts.isVoidExpression(node) || ts.isAwaitExpression(node) || ts.isYieldExpression(node)) return node.expression;
  if (ts.isReturnStatement(node) || ts.isThrowStatement(node) || ts.isExpressionStatement(node)) return node.expression;
  if (ts.isSpreadElement(node) || ts.isSpreadAssignment(node) || ts.isForOfStatement(node)) return node.expression;
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return node.expression;
  return undefined;
}
