import type { PlainJson } from "../../packages/python-values/src/value.ts";
import { beamTemplate } from "../../packages/tool-parsers/src/formats/response-template/beam-template.ts";

/** A response template, and a turn of a model that has it. */
export interface TemplateSample {
  readonly template: PlainJson;
  /** A turn with one call of `search`, and with reasoning if the format has any. */
  readonly turn: (query: string) => string;
}

const call = { type: "function", function: { name: "{name}", arguments: "{content}" } };
const think = { open: "<think>", close: "</think>" };

/** Templates with every reader of contents and every kind of anchor. */
export const templateSamples: Readonly<Record<string, TemplateSample>> = {
  beam: {
    template: beamTemplate,
    turn: (query) =>
      `<|channel|>analysis<|message|>plan<|end|><|start|>assistant to=search<|channel|>analysis ` +
      `<|constrain|>xml<|message|><rfl:parameter name="query">\n${query}\n</rfl:parameter><|call|>`,
  },
  json: {
    template: {
      start_anchor: "<|im_start|>assistant\n",
      fields: {
        thinking: think,
        content: { close: "<|im_end|>" },
        tool_calls: {
          open_pattern: String.raw`<tool_call>\s*`,
          close_pattern: String.raw`\s*</tool_call>`,
          repeats: true,
          content: "json",
          transform: {
            type: "function",
            function: { name: "{content.name}", arguments: "{content.arguments}" },
          },
        },
      },
    },
    turn: (query) =>
      `<think>plan</think>\n<tool_call>\n{"name": "search", "arguments": {"query": "${query}"}}\n</tool_call>`,
  },
  list: {
    template: {
      start_anchor: ["<A>", "<A> "],
      defaults: { role: "assistant" },
      fields: {
        thinking: { open: ["[THINK]", "[THINK]\n"], close: "[/THINK]", repeats: true },
        tool_calls: {
          open: "[CALLS]",
          close: ["[END]", "[END]\n"],
          content: "json",
          transform_each: true,
          transform: { function: { name: "{name}", arguments: "{args}" } },
        },
      },
    },
    turn: (query) =>
      `[THINK]plan[/THINK]Hi.[CALLS][{"name": "search", "args": {"query": "${query}"}}][END]`,
  },
  lax: {
    template: {
      start_anchor_pattern: "<start>(?:model|assistant)\n?",
      fields: {
        thinking: { open_pattern: "<\\|channel>[a-z]+\n", close: "<channel|>" },
        content: {},
        tool_calls: {
          open_pattern: String.raw`<\|tool_call>call:(?P<name>[\w.-]+)(?=\{)`,
          close: "<tool_call|>",
          content: "json",
          content_args: {
            unquoted_keys: true,
            string_delims: [['<|"|>', '<|"|>']],
            allow_non_json: true,
          },
          transform: call,
        },
      },
    },
    turn: (query) =>
      `<|channel>thought\nplan<channel|>Hi.<|tool_call>call:search{query:<|"|>${query}<|"|>}<tool_call|>`,
  },
  tags: {
    template: {
      start_anchor: "<|assistant|>",
      fields: {
        thinking: think,
        content: { open: "<answer>", close_pattern: String.raw`</answer>|\Z` },
        tool_calls: {
          open_pattern: String.raw`<call(?: id="(?<id>\d+)")? name=(?P<name>[^>\s]+?)>`,
          close_pattern: String.raw`</call>\n*|$`,
          content: "xml-inline",
          content_args: {
            tag_pattern: String.raw`<k>(?P<key>.*?)</k>\s*<v>(?P<value>.*?)</v>`,
            merge_duplicates: true,
            value_parser: { name: "json", args: { allow_non_json: true } },
          },
          transform: call,
        },
      },
    },
    turn: (query) =>
      `<think>plan</think><call name=search><k>query</k><v>${query}</v></call>\n<answer>Bye.</answer>`,
  },
  functions: {
    template: {
      start_anchor: "<|assistant|>",
      fields: {
        thinking: { close: "</think>" },
        tool_calls: {
          open_pattern: String.raw`(?:^|\n)<function=(?P<name>[A-Za-z_]\w*)>`,
          close: "</function>",
          content: "xml-inline",
          content_args: {
            tag_pattern: String.raw`<parameter=(?P<key>[^>]+)>\n(?P<value>.*?)\n</parameter>`,
            merge_duplicates: true,
          },
          transform: call,
        },
      },
    },
    turn: (query) =>
      `plan</think>\n<function=search><parameter=query>\n${query}\n</parameter></function>`,
  },
  lines: {
    template: {
      start_anchor: "<|assistant|>",
      fields: {
        content: {},
        tool_calls: {
          open_pattern: String.raw`^(?P<name>\w+)!|(?<=\n)@(?P<other>\w{1,8})!`,
          close_pattern: "\n{2,}|;",
          content: "kv-lines",
          content_args: { kv_sep: "=", value_parser: { name: "text" } },
          transform: call,
        },
      },
    },
    turn: (query) => `search!query = ${query}\n\nBye.`,
  },
  values: {
    template: {
      start_anchor: "<|assistant|>",
      fields: {
        content: { open: "<c>", close: ["</c>", "</c><|assistant|>"] },
        tool_calls: {
          open: "<t>",
          close: ["</t>", "<end><|assistant|>"],
          content: "xml-inline",
          content_args: {
            tag_pattern: String.raw`<(?P<key>[a-z]+)>(?P<value>[^<]*)</>`,
            value_parser: { name: "int", args: { strip: false } },
          },
          transform: [
            { function: { name: "ping", arguments: "{content}" } },
            { function: { name: "search", arguments: { query: "fixed", all: "{content}" } } },
          ],
        },
      },
    },
    turn: (query) => `<c>Hi.</c><t><count>7</><query>${query.length}</></t>`,
  },
};
