import { decodeOrKeep } from "../../../python-values/src/support/index.ts";
import { isPyDict, isPyList, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import { draftOf, type SchemaDraft } from "./schema-draft.ts";
import { subschemasOf } from "./subschemas.ts";

/** The base URI of a schema without its own. */
const defaultBase = "turnwright:///schema";

/** Maximum nesting of schemas, and maximum number of steps from one schema to the next in a check. */
export const maxSchemaDepth = 500;

/** The target of a reference: a schema, or the reason why it was not found. */
export type Target = { readonly schema: PyValue } | { readonly problem: string };

/** A complete schema with the reference targets of its parts. It never loads other documents. */
export class SchemaDocument {
  readonly draft: SchemaDraft | undefined;
  /** True if the document has a keyword about unevaluated parts. */
  readonly tracksEvaluated: boolean;
  /** The base URI of each part's references. */
  readonly #bases = new Map<PyDict, string>();
  readonly #byAddress = new Map<string, PyDict>();
  /** The dynamic anchors, with the number of parts that define each. */
  readonly #dynamicCounts = new Map<string, number>();

  constructor(root: PyDict) {
    this.draft = draftOf(root);
    let tracks = false;
    const walk = (schema: PyDict, outer: string, depth: number): void => {
      if (this.#bases.has(schema) || depth > maxSchemaDepth) return;
      const base = this.#enter(schema, outer);
      tracks ||= schema.has("unevaluatedProperties") || schema.has("unevaluatedItems");
      for (const [, part] of subschemasOf(schema)) if (isPyDict(part)) walk(part, base, depth + 1);
    };
    this.#byAddress.set(defaultBase, root);
    walk(root, defaultBase, 0);
    this.tracksEvaluated = tracks;
  }

  /** Records the reference targets of a part, and returns its base URI. */
  #enter(schema: PyDict, outer: string): string {
    const isOld = this.draft !== undefined && this.draft < 2019;
    const id = schema.get(this.draft === 4 ? "id" : "$id");
    let base = outer;
    // In an old draft, siblings of a reference are ignored, and `id` is one of them.
    if (typeof id === "string" && !(isOld && schema.has("$ref"))) {
      const address = resolve(id, outer);
      if (address !== undefined && isOld && id.startsWith("#")) this.#note(address, schema);
      else if (address !== undefined) this.#note((base = address.replace(/#$/, "")), schema);
    }
    this.#bases.set(schema, base);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema.get(keyword);
      if (typeof anchor === "string" && !isOld) this.#note(`${base}#${anchor}`, schema);
    }
    const dynamic = schema.get("$dynamicAnchor") ?? (schema.get("$recursiveAnchor") === true && "");
    if (typeof dynamic === "string") {
      this.#dynamicCounts.set(dynamic, (this.#dynamicCounts.get(dynamic) ?? 0) + 1);
    }
    return base;
  }

  /** Records the address of a part. If two parts have one address, the first part keeps it. */
  #note(address: string, schema: PyDict): void {
    if (!this.#byAddress.has(address)) this.#byAddress.set(address, schema);
  }

  /** Resolves the reference of a part. */
  follow(from: PyDict, reference: string): Target {
    return this.#find(from, reference) ?? { problem: `no part is named ${brief(reference)}` };
  }

  /** Same as `follow()` for `$dynamicRef` and `$recursiveRef`, if only one target is possible. */
  followDynamic(from: PyDict, reference: string): Target {
    const name = reference.slice(reference.indexOf("#") + 1);
    if ((this.#dynamicCounts.get(name) ?? 0) <= 1) return this.follow(from, reference);
    return { problem: `which part ${brief(reference)} means depends on the way to it` };
  }

  #find(from: PyDict, reference: string): Target | undefined {
    const address = resolve(reference, this.#bases.get(from) ?? defaultBase);
    if (address === undefined) return undefined;
    const [base = "", fragment = ""] = address.split("#");
    const resource = this.#byAddress.get(base);
    if (fragment === "" || resource === undefined) {
      return resource === undefined ? undefined : { schema: resource };
    }
    const name = decodeOrKeep(fragment);
    if (!name.startsWith("/")) {
      const anchored = this.#byAddress.get(`${base}#${name}`);
      return anchored === undefined ? undefined : { schema: anchored };
    }
    return this.#followPointer(resource, name);
  }

  #followPointer(resource: PyDict, pointer: string): Target | undefined {
    let part: PyValue | undefined = resource;
    let base = this.#bases.get(resource) ?? defaultBase;
    for (const token of pointer.slice(1).split("/")) {
      const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
      if (isPyList(part)) part = /^(?:0|[1-9]\d*)$/.test(key) ? part[Number(key)] : undefined;
      else part = isPyDict(part) ? part.get(key) : undefined;
      if (part === undefined) return undefined;
      if (isPyDict(part)) base = this.#bases.get(part) ?? base;
    }
    // A part that no keyword leads to, such as one of OpenAPI's `components`.
    if (isPyDict(part) && !this.#bases.has(part)) this.#bases.set(part, base);
    return { schema: part };
  }
}

function resolve(reference: string, base: string): string | undefined {
  return URL.canParse(reference, base) ? new URL(reference, base).href : undefined;
}

function brief(reference: string): string {
  return JSON.stringify(reference.length > 100 ? `${reference.slice(0, 100)}…` : reference);
}
