import { pythonStrip } from "../../../../python-values/src/index.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { evaluatePythonLiteral } from "../../shared/python/python-literal.ts";
import { ExpatReader, type XmlHandlers } from "../../shared/xml/expat-reader.ts";
import { Step3p5Argument } from "./step3p5-argument.ts";
import { step3p5TextTypes, step3p5TypeOf } from "./step3p5-schema.ts";
import type { VllmCall } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

/** The written text of one call. */
interface Written {
  name: string;
  readonly parts: string[];
}

/** The parameter that is open. */
interface OpenParameter {
  readonly name: string;
  /** Writes the value piece by piece while it arrives. Absent until its first text. */
  argument: Step3p5Argument | undefined;
  /** The text of a value that is read as a Python literal. It is written only when the value ends. */
  readonly collected: string[];
  /** True once the quote before the value is written. */
  isQuoted: boolean;
}

/** The number of a call, or `undefined` for text outside of all calls. */
type CallId = number | undefined;

/**
 * Writes the calls as the events of the XML documents arrive. Every `<tool_call>` is a document of
 * its own. Text outside of all calls has no name and is lost.
 */
export class Step3p5Calls implements XmlHandlers {
  /** The reader of the document that is open. */
  document = new ExpatReader(this);
  /** Text around the calls that was not added to the content yet. */
  outerText: string[] = [];
  /** The number of calls that have started. */
  count = 0;
  /** The source of the open value, if it is read as a Python literal when it ends. */
  literal: string | undefined;
  readonly #context: ParseContext;
  readonly #onReset: () => void;
  readonly #content: string[] = [];
  readonly #written = new Map<CallId, Written>();
  /** Calls with closed arguments. */
  readonly #closed = new Set<CallId>();
  /** Calls for which an empty part was written. This happens at a call's start and at its end. */
  readonly #bounded = new Set<CallId>();
  #call: CallId;
  #function: string | undefined;
  #isFunctionOpen = false;
  #hasParameters = false;
  #parameter: OpenParameter | undefined;
  /** True if a line break is written before the next text. */
  #hasDelayedBreak = false;

  /** @param onReset - Called when a document ends. */
  constructor(context: ParseContext, onReset: () => void) {
    this.#context = context;
    this.#onReset = onReset;
  }

  get isInCall(): boolean {
    return this.#call !== undefined;
  }

  get functionName(): string | undefined {
    return this.#function;
  }

  get content(): string {
    return this.#content.join("");
  }

  get calls(): VllmCall[] {
    return [...this.#written.values()].flatMap(({ name, parts }) =>
      name === "" ? [] : [{ name, argumentsText: parts.join("") }],
    );
  }

  get isClosed(): boolean {
    return this.#closed.has(this.#call);
  }

  get isBounded(): boolean {
    return this.#bounded.has(this.#call);
  }

  /** The type of a parameter of the function that is called. */
  typeOf(parameter: string): string {
    return step3p5TypeOf(parameter, this.#function, this.#context);
  }

  releaseText(): void {
    this.#content.push(...this.outerText);
    this.outerText = [];
  }

  /** Completes the open call, because the next one starts. */
  completeCall(): void {
    this.#endParameter();
    if (this.#isFunctionOpen) this.#endFunction();
    this.#write("");
    this.#reset();
  }

  /** Ends the open parameter and the open function. */
  endFunction(): void {
    this.#endParameter();
    if (this.#function !== undefined) this.#endFunction();
  }

  start(element: string, attributes: ReadonlyMap<string, string>): void {
    const name = attributes.get("name");
    if (element === "tool_call") this.#startCall();
    else if (element.startsWith("function")) this.#startFunction(name);
    else if (element.startsWith("parameter")) this.#startParameter(name);
  }

  end(element: string): void {
    const isFunction = element.startsWith("function");
    const isCall = element === "tool_call";
    if (isFunction || isCall || element.startsWith("parameter")) this.#endParameter();
    if (isFunction) this.#endFunction();
    if (isCall) this.#endCall();
  }

  text(source: string): void {
    const parameter = this.#parameter;
    if (parameter === undefined) return;
    if (this.literal !== undefined) {
      parameter.collected.push(this.#delayBreak(source));
      return;
    }
    const type = this.typeOf(parameter.name);
    const isEmpty = (parameter.argument?.value ?? "") === "";
    const data = isEmpty && source.startsWith("\n") ? source.slice(1) : source;
    if (step3p5TextTypes.has(type) && !parameter.isQuoted) {
      this.#write('"');
      parameter.isQuoted = true;
    }
    if (data === "") return;
    parameter.argument ??= new Step3p5Argument(type);
    this.#write(parameter.argument.push(this.#delayBreak(data)));
  }

  /**
   * Returns the data after the delayed line break, without a line break at its end, which is
   * delayed.
   */
  #delayBreak(data: string): string {
    const whole = this.#hasDelayedBreak ? `\n${data}` : data;
    this.#hasDelayedBreak = whole.endsWith("\n");
    return this.#hasDelayedBreak ? whole.slice(0, -1) : whole;
  }

  #startCall(): void {
    this.#endParameter();
    if (this.#function !== undefined) this.#endFunction();
    if (this.#call !== undefined) this.#endCall();
    this.#hasParameters = false;
    this.count += 1;
    this.#call = this.count;
  }

  #startFunction(name: string | undefined): void {
    if (this.#call === undefined) this.#startCall();
    this.#endParameter();
    if (this.#function !== undefined) this.#endFunction();
    this.#function = name === "" ? undefined : name;
    this.#isFunctionOpen = true;
    if (this.#function !== undefined) this.#write("", this.#function);
  }

  #startParameter(name: string | undefined): void {
    this.#endParameter();
    this.#parameter = undefined;
    if (name === undefined || name === "") return;
    this.#parameter = { name, argument: undefined, collected: [], isQuoted: false };
    this.#write(`${this.#hasParameters ? ", " : "{"}"${name}": `);
  }

  #endParameter(): void {
    const parameter = this.#parameter;
    if (parameter === undefined) return;
    if (this.literal !== undefined) this.#write(this.#readLiteral(this.literal, parameter));
    else {
      const type = this.typeOf(parameter.name);
      parameter.argument?.check();
      if (step3p5TextTypes.has(type)) {
        const isEmpty = (parameter.argument?.value ?? "") === "";
        this.#write(isEmpty && !parameter.isQuoted ? '""' : '"');
      }
    }
    this.literal = undefined;
    this.#hasDelayedBreak = false;
    this.#hasParameters = true;
    this.#parameter = undefined;
  }

  #readLiteral(source: string, { argument, collected }: OpenParameter): string {
    const text = source === "" ? (argument?.value ?? "") + collected.join("") : source;
    const literal = catchPython(() =>
      evaluatePythonLiteral(this.#hasDelayedBreak ? `${text}\n` : text),
    );
    const isJson = literal?.isJson === true;
    return writeJson(isJson ? literal.value : text);
  }

  #endFunction(): void {
    this.#write(this.#hasParameters ? "}" : "{}");
    this.#isFunctionOpen = false;
    this.#function = undefined;
  }

  #endCall(): void {
    this.#endParameter();
    if (this.#isFunctionOpen) this.#endFunction();
    this.#write("");
    if (this.outerText.some((part) => pythonStrip(part) !== "")) this.releaseText();
    this.#reset();
  }

  #write(part: string, name = ""): void {
    let written = this.#written.get(this.#call);
    if (written === undefined) {
      written = { name: "", parts: [] };
      this.#written.set(this.#call, written);
    }
    if (name !== "") written.name = name;
    written.parts.push(part);
    if (part === "}" || part === "{}") this.#closed.add(this.#call);
    if (part === "") this.#bounded.add(this.#call);
  }

  #reset(): void {
    this.document = new ExpatReader(this);
    this.#call = undefined;
    this.#function = undefined;
    this.#isFunctionOpen = false;
    this.#hasParameters = false;
    this.#parameter = undefined;
    this.#hasDelayedBreak = false;
    this.outerText = [];
    this.literal = undefined;
    this.#onReset();
  }
}
