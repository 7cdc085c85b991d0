import { typeError } from "../template-error.ts";
import type { CallArguments, TemplateObject, TemplateValue } from "../values/template-value.ts";
import { objectOf, typeName, Undefined } from "../values/template-value.ts";
import { undefinedError } from "../values/template-undefined.ts";

/** The parameters of a built-in function, in order. */
export interface Signature {
  readonly name: string;
  readonly parameters: readonly string[];
  readonly requiredCount: number;
}

/** The argument of each parameter; `undefined` if the call omits it. */
export type BoundArguments = readonly (TemplateValue | undefined)[];

/**
 * Reads a signature such as `replace old new count?`: the name, then the parameters, with a question mark after
 * optional ones.
 */
export function signatureOf(text: string): Signature {
  const [name = "", ...parameters] = text.split(" ");
  return {
    name,
    parameters: parameters.map((parameter) => parameter.replace("?", "")),
    requiredCount: parameters.filter((parameter) => !parameter.endsWith("?")).length,
  };
}

/**
 * Assigns a call's arguments to parameters.
 *
 * @throws TemplateError `TypeError` for a missing, unknown or extra argument.
 */
export function bindArguments(signature: Signature, args: CallArguments): BoundArguments {
  const { name, parameters, requiredCount } = signature;
  const { positional, named } = args;
  if (positional.length > parameters.length) {
    throw typeError(
      `${name}() takes at most ${parameters.length} arguments (${positional.length} given)`,
    );
  }
  if (named.size === 0) {
    if (positional.length < requiredCount) throw missing(signature, positional.length);
    return positional;
  }
  const bound: (TemplateValue | undefined)[] = [...positional];
  for (const [key, value] of named) {
    const index = parameters.indexOf(key);
    if (index < 0) throw typeError(`${name}() got an unexpected keyword argument '${key}'`);
    if (bound[index] !== undefined) {
      throw typeError(`${name}() got multiple values for argument '${key}'`);
    }
    bound[index] = value;
  }
  for (let index = 0; index < requiredCount; index++) {
    if (bound[index] === undefined) throw missing(signature, index);
  }
  return bound;
}

function missing({ name, parameters }: Signature, index: number) {
  return typeError(`${name}() missing 1 required positional argument: '${parameters[index]}'`);
}

/** A built-in function or a bound method. */
export class BuiltinFunction implements TemplateObject {
  readonly pythonType: string;
  readonly #run: (args: CallArguments) => TemplateValue;

  constructor(
    run: (args: CallArguments) => TemplateValue,
    pythonType = "builtin_function_or_method",
  ) {
    this.#run = run;
    this.pythonType = pythonType;
  }

  call(args: CallArguments): TemplateValue {
    return this.#run(args);
  }
}

/** A built-in function with arguments bound by a signature; see `signatureOf()`. */
export function builtin(
  signatureText: string,
  run: (...args: BoundArguments) => TemplateValue,
): BuiltinFunction {
  const signature = signatureOf(signatureText);
  return new BuiltinFunction((args) => run(...bindArguments(signature, args)));
}

/**
 * Calls a value.
 *
 * @throws TemplateError `TypeError` if the value is not callable.
 */
export function callValue(value: TemplateValue, args: CallArguments): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  const object = objectOf(value);
  if (object?.call === undefined) throw typeError(`'${typeName(value)}' object is not callable`);
  return object.call(args);
}
