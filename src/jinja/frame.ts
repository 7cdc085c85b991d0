import type { JinjaStatement } from "./ast.ts";
import type { JinjaScope, NamePlace } from "./scope.ts";
import type { TemplateValue } from "./template-value.ts";

/** What a template is rendered with. */
export interface RenderContext {
  /** The value of a variable, or `undefined` where there is none. */
  resolve(name: string): TemplateValue | undefined;
}

/** The values of one frame's names while it runs; `undefined` where a name has none yet. */
export interface Frame {
  readonly slots: (TemplateValue | undefined)[];
  readonly parent: Frame | undefined;
  readonly context: RenderContext;
}

/** Computes an expression. */
export type Evaluate = (frame: Frame) => TemplateValue;

/** What a template has printed so far. */
export interface Output {
  text: string;
}

/** How a statement ended. */
export type Flow = "next" | "break" | "continue";

/** Runs a statement. */
export type Execute = (frame: Frame, output: Output) => Flow;

/** Where a statement stands. */
export interface StatementPlace {
  readonly scope: JinjaScope;
  /** Whether it stands directly in an `if`; see `FilterPlace`. */
  readonly soft: boolean;
  readonly inLoop: boolean;
}

/** Prepares statements, to be run one after the other. */
export type CompileStatements = (
  statements: readonly JinjaStatement[],
  place: StatementPlace,
) => Execute;

/** Prepares the entering of a scope's frame. */
export function compileEntry(scope: JinjaScope): (parent: Frame) => Frame {
  const { sources, slotCount } = scope;
  return (parent) => {
    const slots = new Array<TemplateValue | undefined>(slotCount).fill(undefined);
    const frame: Frame = { slots, parent, context: parent.context };
    for (const { slot, source } of sources) {
      slots[slot] =
        source.type === "context"
          ? frame.context.resolve(source.name)
          : valueAt(frame, source.place);
    }
    return frame;
  };
}

/** The outermost frame of a template. */
export function createRootFrame(scope: JinjaScope, context: RenderContext): Frame {
  const outside: Frame = { slots: [], parent: undefined, context };
  return { ...compileEntry(scope)(outside), parent: undefined };
}

/** The frame that holds a place. */
export function frameAt(frame: Frame, depth: number): Frame {
  let holder = frame;
  for (let level = 0; level < depth; level++) holder = holder.parent as Frame;
  return holder;
}

function valueAt(frame: Frame, { depth, slot }: NamePlace): TemplateValue | undefined {
  return frameAt(frame, depth).slots[slot];
}
