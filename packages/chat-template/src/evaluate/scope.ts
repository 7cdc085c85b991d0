import type { JinjaExpression, JinjaFilter, JinjaStatement, JinjaTarget } from "../syntax/ast.ts";

/** The place of a name's value: the frame that is `depth` levels up, and the slot in it. */
export interface NamePlace {
  readonly depth: number;
  readonly slot: number;
}

/** The origin of a slot's first value when its frame is entered; `undefined` for no value. */
type SlotSource =
  | { readonly type: "outer"; readonly place: NamePlace }
  | { readonly type: "context"; readonly name: string };

/**
 * The names of one frame (a template, a loop's body, a macro, …), each with its slot.
 *
 * Jinja decides at compile time to which frame a name belongs, and that is visible: a name that is assigned
 * anywhere in a frame belongs to the frame. Before the assignment it is undefined or has the value of the outer
 * frame or the context, depending on the order of reads and assignments.
 *
 * **Source:** behaviour of Jinja 3.1.6, `jinja2/idtracking.py`.
 */
export class JinjaScope {
  readonly parent: JinjaScope | undefined;
  /** True if printed text is escaped here, as known at compile time. */
  escapes: boolean;
  /** True if escaping is decided at run time, except for constants. */
  isVolatile: boolean;
  /** Shared by the copies that branches make. */
  readonly #slots: Map<string, number>;
  readonly #known: Set<string>;
  readonly #sources: Map<string, SlotSource | undefined>;
  readonly #stored: Set<string>;

  constructor(parent?: JinjaScope, copied?: JinjaScope) {
    this.parent = parent;
    this.escapes = parent?.escapes ?? false;
    this.isVolatile = parent?.isVolatile ?? false;
    this.#slots = copied ? copied.#slots : new Map();
    this.#known = new Set(copied ? copied.#known : []);
    this.#sources = new Map(copied ? copied.#sources : []);
    this.#stored = new Set(copied ? copied.#stored : []);
  }

  /** The number of slots that a frame needs. */
  get slotCount(): number {
    return this.#slots.size;
  }

  /** The slots that have a value when the frame is entered. */
  get sources(): readonly { readonly slot: number; readonly source: SlotSource }[] {
    return Array.from(this.#sources).flatMap(([name, source]) =>
      source === undefined ? [] : [{ slot: this.#slots.get(name) as number, source }],
    );
  }

  /** The place of a name, or `undefined` if no frame has it. */
  find(name: string): NamePlace | undefined {
    if (this.#known.has(name)) return { depth: 0, slot: this.#slots.get(name) as number };
    const outer = this.parent?.find(name);
    return outer && { depth: outer.depth + 1, slot: outer.slot };
  }

  /** Adds a name to this frame; other code sets its value. */
  declare(name: string): void {
    this.#stored.add(name);
    this.#define(name, undefined);
  }

  /** Records a read of the name. */
  load(name: string): void {
    if (this.find(name) === undefined) this.#define(name, { type: "context", name });
  }

  /** Records an assignment to the name. */
  store(name: string): void {
    this.#stored.add(name);
    if (!this.#known.has(name)) this.#define(name, this.#outerSource(name));
  }

  /** Records alternative branches; each function records the names of one branch. */
  branch(branches: readonly ((scope: JinjaScope) => void)[]): void {
    const copies = branches.map((analyze) => {
      const copy = new JinjaScope(this.parent, this);
      analyze(copy);
      return copy;
    });
    const stored = new Set(copies.flatMap((copy) => [...copy.#stored]));
    for (const name of this.#stored) stored.delete(name);
    for (const copy of copies) {
      copy.#known.forEach((name) => this.#known.add(name));
      copy.#sources.forEach((source, name) => this.#sources.set(name, source));
      copy.#stored.forEach((name) => this.#stored.add(name));
    }
    // The branch may be skipped: until the assignment, the name has the outer value.
    for (const name of stored) {
      this.#sources.set(name, this.#outerSource(name) ?? { type: "context", name });
    }
  }

  #outerSource(name: string): SlotSource | undefined {
    const outer = this.parent?.find(name);
    return outer && { type: "outer", place: { depth: outer.depth + 1, slot: outer.slot } };
  }

  #define(name: string, source: SlotSource | undefined): void {
    if (!this.#slots.has(name)) this.#slots.set(name, this.#slots.size);
    this.#known.add(name);
    this.#sources.set(name, source);
  }
}

/** Records the names that expressions and filters read. */
export function loadNames(
  scope: JinjaScope,
  ...nodes: readonly (JinjaExpression | readonly JinjaFilter[] | undefined)[]
): void {
  forEachName(nodes, (name) => scope.load(name));
}

/** Records the names that a target assigns. */
export function storeNames(
  scope: JinjaScope,
  target: JinjaTarget,
  { declared }: { readonly declared: boolean },
): void {
  switch (target.type) {
    case "name":
      if (declared) scope.declare(target.name);
      else scope.store(target.name);
      return;
    case "namespace":
      scope.load(target.name);
      return;
    case "tuple":
      for (const item of target.items) storeNames(scope, item, { declared });
  }
}

/** Records the names of statements in their own frame; inner frames are analysed separately. */
export function analyzeStatements(scope: JinjaScope, statements: readonly JinjaStatement[]): void {
  for (const statement of statements) analyzeStatement(scope, statement);
}

function analyzeStatement(scope: JinjaScope, statement: JinjaStatement): void {
  switch (statement.type) {
    case "output":
      return loadNames(scope, statement.value);
    case "set":
      loadNames(scope, statement.value);
      return storeNames(scope, statement.target, { declared: false });
    case "set-block":
      return storeNames(scope, statement.target, { declared: false });
    case "for":
      return loadNames(scope, statement.iterable);
    case "if":
      return analyzeIf(scope, statement);
    case "macro":
      if (statement.name !== undefined) scope.store(statement.name);
      return;
    case "call-block":
      return forEachName([statement.callee, statement.args], (name) => scope.load(name));
    case "filter-block":
      return loadNames(scope, statement.filters);
    case "with":
      return loadNames(scope, ...statement.targets.map(({ value }) => value));
    default:
  }
}

function analyzeIf(scope: JinjaScope, node: Extract<JinjaStatement, { type: "if" }>): void {
  const [first, ...others] = node.branches;
  if (first === undefined) return;
  loadNames(scope, first.test);
  scope.branch([
    (branch) => analyzeStatements(branch, first.body),
    (branch) => {
      for (const other of others) {
        analyzeIf(branch, { type: "if", branches: [other], otherwise: [] });
      }
    },
    (branch) => analyzeStatements(branch, node.otherwise),
  ]);
}

/** True if the name occurs anywhere in the nodes, including inner frames. */
export function usesName(nodes: unknown, name: string): boolean {
  let used = false;
  forEachName(nodes, (found) => {
    used ||= found === name;
  });
  return used;
}

function forEachName(node: unknown, visit: (name: string) => void): void {
  if (typeof node !== "object" || node === null) return;
  if ("type" in node && node.type === "name" && "name" in node) visit(node.name as string);
  for (const child of Object.values(node)) forEachName(child, visit);
}
