import type { Code, ValueType } from "./instruction.ts";
import { control, encodeUnsigned, i32, sequence, toBytes } from "./instruction.ts";

/** A parameter or a local variable of a function. */
export interface Variable {
  readonly get: Code;
  set(value: Code): Code;
  /** Adds to an integer variable. */
  increase(amount: Code | number): Code;
}

/** The operations for writing a function's body. */
export interface FunctionScope {
  local(type: ValueType): Variable;
  /** Creates a variable for each type. */
  locals<const Types extends readonly ValueType[]>(
    ...types: Types
  ): { readonly [Index in keyof Types]: Variable };
}

/** The parameters of a function: names and types, in the order of a call. */
type ParameterTypes = Readonly<Record<string, ValueType>>;

/** A function of a module. */
interface FunctionDefinition<P extends ParameterTypes> {
  /** The name of the export. */
  readonly name: string;
  readonly parameters: P;
  readonly result?: ValueType;
  /** Returns code that leaves exactly the result on the stack. */
  readonly body: (
    scope: FunctionScope,
    parameters: { readonly [Name in keyof P]: Variable },
  ) => Code;
}

/** A function that was added. Functions added later can call it. */
export type Callee<P extends ParameterTypes> = (operands: Readonly<Record<keyof P, Code>>) => Code;

/** Builds a module of functions over one imported shared memory, `env.memory`. */
export interface ModuleBuilder {
  add<const P extends ParameterTypes>(definition: FunctionDefinition<P>): Callee<P>;
  build(): Uint8Array<ArrayBuffer>;
}

const TYPE_CODES: Readonly<Record<ValueType, number>> = {
  i32: 0x7f,
  f32: 0x7d,
  f64: 0x7c,
  v128: 0x7b,
};

const MAGIC_AND_VERSION: Code = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** Number of pages of 64 KiB in 4 GiB, the limit of 32-bit addresses. */
export const MAX_PAGES = 65_536;

/**
 * Starts a module.
 *
 * **Source:** WebAssembly core specification 2.0, section 5.5 (modules); the threads proposal for
 * the shared memory's limits.
 */
export function createModuleBuilder(): ModuleBuilder {
  const types: Code[] = [];
  const bodies: Code[] = [];
  const names: string[] = [];
  return {
    add<const P extends ParameterTypes>(definition: FunctionDefinition<P>): Callee<P> {
      const { name, parameters, result, body } = definition;
      const index = names.length;
      const parameterNames = Object.keys(parameters);
      const parameterTypes = Object.values(parameters);
      names.push(name);
      types.push([
        0x60,
        vector(parameterTypes.map((type) => [TYPE_CODES[type]])),
        vector(result === undefined ? [] : [[TYPE_CODES[result]]]),
      ]);
      bodies.push(
        encodeFunction(parameterTypes.length, (scope) =>
          body(scope, nameVariables(parameterNames) as { [Name in keyof P]: Variable }),
        ),
      );
      return (operands: Readonly<Record<string, Code>>) =>
        control.call(index, ...parameterNames.map((operand) => operands[operand] ?? []));
    },
    build() {
      const memoryImport: Code = [text("env"), text("memory"), 0x02, SHARED_MEMORY_TYPE];
      return Uint8Array.from(
        toBytes([
          MAGIC_AND_VERSION,
          section(1, vector(types)),
          section(2, vector([memoryImport])),
          section(3, vector(types.map((_, index) => encodeUnsigned(index)))),
          section(7, vector(names.map((name, index) => [text(name), 0, encodeUnsigned(index)]))),
          section(10, vector(bodies)),
        ]),
      );
    },
  };
}

/** A type that any shared memory satisfies: at least 0 pages, at most the maximum. */
const SHARED_MEMORY_TYPE: Code = [0x03, 0, encodeUnsigned(MAX_PAGES)];

/** Names the parameters, which are the first variables of a function. */
function nameVariables(names: readonly string[]): Readonly<Record<string, Variable>> {
  return Object.fromEntries(names.map((name, index) => [name, variable(index)]));
}

function encodeFunction(parameterCount: number, body: (scope: FunctionScope) => Code): Code {
  const localTypes: ValueType[] = [];
  const local = (type: ValueType): Variable => {
    localTypes.push(type);
    return variable(parameterCount + localTypes.length - 1);
  };
  const scope: FunctionScope = {
    local,
    locals: <const Types extends readonly ValueType[]>(...types: Types) =>
      types.map(local) as { [Index in keyof Types]: Variable },
  };
  const code = body(scope);
  const locals = vector(localTypes.map((type) => [1, TYPE_CODES[type]]));
  return sized([locals, code, 0x0b]);
}

function variable(index: number): Variable {
  const at = encodeUnsigned(index);
  const get: Code = [0x20, at];
  const set = (value: Code): Code => [value, 0x21, at];
  return {
    get,
    set,
    increase: (amount) =>
      set(i32.add(get, typeof amount === "number" ? i32.constant(amount) : amount)),
  };
}

function vector(items: readonly Code[]): Code {
  return [encodeUnsigned(items.length), items];
}

/** Prefixes code with its number of bytes. */
function sized(code: Code): Code {
  const bytes = toBytes(code);
  return [encodeUnsigned(bytes.length), bytes];
}

function section(id: number, content: Code): Code {
  return [id, sized(content)];
}

function text(value: string): Code {
  return sized([...new TextEncoder().encode(value)]);
}

/**
 * Runs the body while `counter` is below `end`, and adds `step` to it after each run. May run zero
 * times.
 */
export function countUp(
  counter: Variable,
  { end, step }: { end: Code; step: number },
  ...body: readonly Code[]
): Code {
  return control.block(
    control.loop(
      control.branchIf(1, i32.atLeast(counter.get, end)),
      ...body,
      counter.increase(step),
      control.branch(0),
    ),
  );
}

/**
 * Adds a counting loop like `countUp()`, but the body must run at least once. This saves a branch
 * in the innermost loops.
 */
export function countUpOnce(
  counter: Variable,
  { end, step }: { end: Code; step: number },
  ...body: readonly Code[]
): Code {
  return control.loop(
    sequence(...body),
    counter.increase(step),
    control.branchIf(0, i32.lessThan(counter.get, end)),
  );
}
