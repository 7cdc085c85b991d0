import type { JinjaStatement } from "../syntax/ast.ts";
import type { JinjaScope, NamePlace } from "./scope.ts";
import type { TemplateValue } from "../values/template-value.ts";

/** The context of a rendering. */
export interface RenderContext {
  /** The value of a variable, or `undefined` if it does not exist. */
  resolve(name: string): TemplateValue | undefined;
}

/** The values of a frame's names during its execution; `undefined` for a name without a value yet. */
export interface Frame {
  readonly slots: (TemplateValue | undefined)[];
  readonly parent: Frame | undefined;
  readonly context: RenderContext;
}

/** A compiled expression: computes its value in a frame. */
export type Evaluate = (frame: Frame) => TemplateValue;

/** The text printed so far. */
export interface Output {
  text: string;
}

/** The way a statement ended. */
export type Flow = "next" | "break" | "continue";

/** Runs a statement. */
export type Execute = (frame: Frame, output: Output) => Flow;

/** The position of a statement. */
export interface StatementPlace {
  readonly scope: JinjaScope;
  /** True if it stands directly in an `if`; see `FilterPlace`. */
  readonly soft: boolean;
  readonly inLoop: boolean;
}

/** Compiles statements that run one after the other. */
export type CompileStatements = (
  statements: readonly JinjaStatement[],
  place: StatementPlace,
) => Execute;

/** Compiles the creation of a scope's frame. */
export function compileEntry(scope: JinjaScope): (parent: Frame) => Frame {
  const fill = compileSources(scope);
  const empty = emptySlots(scope);
  return (parent) => {
    const frame: Frame = { slots: empty.slice(), parent, context: parent.context };
    fill(frame);
    return frame;
  };
}

/** Compiles the creation of a template's outermost frame. */
export function compileRoot(scope: JinjaScope): (context: RenderContext) => Frame {
  const fill = compileSources(scope);
  const empty = emptySlots(scope);
  return (context) => {
    const frame: Frame = { slots: empty.slice(), parent: undefined, context };
    fill(frame);
    return frame;
  };
}

function emptySlots({ slotCount }: JinjaScope): undefined[] {
  return Array.from({ length: slotCount }, () => undefined);
}

/** Compiles the initialization of a new frame's slots with values from outer frames. */
function compileSources({ sources }: JinjaScope): (frame: Frame) => void {
  const count = sources.length;
  return (frame) => {
    for (let index = 0; index < count; index++) {
      const { slot, source } = sources[index] as (typeof sources)[number];
      frame.slots[slot] =
        source.type === "context"
          ? frame.context.resolve(source.name)
          : valueAt(frame, source.place);
    }
  };
}

/** The frame that is `depth` levels up. */
export function frameAt(frame: Frame, depth: number): Frame {
  let holder = frame;
  for (let level = 0; level < depth; level++) holder = holder.parent as Frame;
  return holder;
}

function valueAt(frame: Frame, { depth, slot }: NamePlace): TemplateValue | undefined {
  return frameAt(frame, depth).slots[slot];
}
