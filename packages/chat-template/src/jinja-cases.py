"""Records what Python's jinja2 renders for small templates, set up as transformers sets it up.

    python -m venv venv && venv/bin/pip install jinja2==3.1.6
    venv/bin/python packages/chat-template/src/jinja-cases.py > packages/chat-template/src/jinja-cases.json
    npx oxfmt packages/chat-template/src/jinja-cases.json

`jinja-cases.test.ts` renders the same templates. An `error` is the exception's name and message.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES = {
    "none": None,
    "text": "  Hello, World  ",
    "plain": "abcabc",
    "emoji": "a😀é👩‍👧z",
    "decomposed": "e\u0301",
    "lines": "one\ntwo\r\nthree\n",
    "html": "<b a='1'>&\"x\"</b>",
    "spaces": "\u00a0\ufeff\u0085\u001c x \u2003",
    "int": 7,
    "negative": -7,
    "zero": 0,
    "big": 12345678901234567890,
    "float": 2.5,
    "whole": 2.0,
    "tiny": 1e-07,
    "huge": 1e22,
    "minus_zero": -0.0,
    "yes": True,
    "no": False,
    "list": [3, 1.0, "x", None, True],
    "numbers": [3, 1, 2],
    "words": ["b", "A", "c"],
    "dict": {"b": 1, "a": [1, 2.0], "items": "shadow", "10": "ten", "2": "two"},
    "empty": {},
    "messages": [
        {"role": "user", "content": "Hi", "n": 2},
        {"role": "assistant", "content": None, "n": 1},
        {"role": "tool", "content": ["p", {"type": "text"}], "n": 3},
    ],
}

CASES = {
    "`trim_blocks` drops the first line break after a block and a comment, not after a variable": [
        "{% if yes %}\na\n{% endif %}\nb",
        "{# c #}\na",
        "{{ int }}\na",
        "{% set x = 1 %}\n\na",
        "{% raw %}\na{% endraw %}\nb",
    ],
    "`lstrip_blocks` strips white space between a line's start and a block": [
        "a\n  \t{% if yes %}b{% endif %}",
        "  {% if yes %}b{% endif %}",
        "a  {% if yes %}b{% endif %}",
        "a\n  {# c #}b",
        "a\n  {{ int }}",
        "{{ int }}  {% if yes %}b{% endif %}",
        "{% if yes %}\n  {% endif %}b",
        "a\n  {% raw %} x {% endraw %} {% if yes %}b{% endif %}",
    ],
    "signs in tags strip or keep white space": [
        "a \n {%- if yes -%} \n b \n {%- endif -%} \n c",
        "a\n  {%+ if yes +%}\nb{% endif %}",
        "a {{- int -}} b",
        "a \n {#- c -#} \n b",
        "a\u00a0\u2003{{- int -}}\u0085b",
        "a\ufeff{{- int -}}\ufeffb",
        "{%- raw -%} {{ x }} {%- endraw -%} b",
    ],
    "line breaks become `\\n`, and one at the end is dropped": [
        "a\r\nb\rc\n",
        "a\n\n",
        "{{ 'x\r\ny' }}",
        "{% if yes %}\r\na{% endif %}\r\n",
    ],
    "string literals take Python's escapes": [
        r"{{ 'a\tb\\n\n\'\"\x41\u00e9\U0001F600\101\q' }}",
        "{{ 'a' 'b' \"c\" }}",
        r"{{ '\
x' }}",
    ],
    "numbers are integers or floats": [
        "{{ 1_000 }} {{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1e3 }} {{ 1.50 }} {{ 1_0.0_1 }}",
        "{{ big }} {{ big + 1 }} {{ whole }} {{ tiny }} {{ huge }} {{ minus_zero }}",
    ],
    "operators bind as in Jinja": [
        "{{ 1 + 2 * 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}",
        "{{ not 1 == 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 ~ 2 + 3 }} {{ 1 + 2 ~ 3 }}",
        "{{ 1 if no else 2 if no else 3 }} {{ 'a' if no }}|{{ ('x' if no) is defined }}",
        "{{ yes or undef.x }} {{ no and undef.x }} {{ 0 or '' or 'z' }} {{ 1 and 'y' }}",
        "{{ -5|abs }} {{ (-5)|abs }} {{ 'a' ~ 'b'|upper }} {{ 3 is odd and 4 is even }}",
        "{{ 1 in [1] and 2 not in [1] }} {{ not 1 in [2] }} {{ 'a' in 'abc' == true }}",
    ],
    "arithmetic is Python's": [
        "{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 70 }}",
        "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** -1 }} {{ true + 1 }} {{ 0.1 + 0.2 }} {{ 1 + 1.0 }}",
        "{{ 'ab' * 2 }} {{ 2 * [1] }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'a' * -1 }}",
        "{{ 1 / 0 }}",
        "{{ 1 % 0 }}",
        "{{ 1.0 // 0 }}",
        "{{ 'a' + 1 }}",
        "{{ 1 + 'a' }}",
        "{{ [] + () }}",
        "{{ none + 1 }}",
        "{{ 'a' + none }}",
        "{{ -'a' }}",
    ],
    "`str()` of anything is Python's": [
        "{{ none }} {{ yes }} {{ no }} {{ whole }} {{ list }} {{ dict }} {{ (1,) }} {{ (1, 'a') }} {{ () }}",
        "{{ ['it\\'s', '\"', '\\n', 'é', '\\x00', '\\u200b', '😀'] }}",
        "{{ {1: 'a', 2.5: none, none: 1, true: 2, (1, 2): 3} }}",
        "{{ dict.items() }} {{ dict.keys() }} {{ empty.values() }}",
        "{{ list|string }}|{{ none|string }}|{{ undef|string }}|{{ yes ~ none ~ undef ~ 1.0 }}",
        "{{ range(3) }} {{ range(1, 9, 2) }} {{ namespace(a=1) is mapping }}",
        "{% macro m() %}{% endmacro %}{{ m }}",
    ],
    "equality is by value": [
        "{{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ [1, 2] == [1.0, 2] }} {{ [1] == (1,) }}",
        "{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ undef == undef2 }} {{ undef == none }}",
        "{{ big == 12345678901234567890 }} {{ big == 12345678901234567891 }} {{ 'é' == decomposed }}",
    ],
    "ordering compares what Python compares": [
        "{{ 1 < 1.5 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 0) }} {{ '\uffee' < '😀' }}",
        "{{ 1 < 'a' }}",
        "{{ none < 1 }}",
        "{{ undef < 1 }}",
        "{{ {} < {} }}",
    ],
    "`in` looks into strings, lists and dictionaries": [
        "{{ 'b' in 'abc' }} {{ '' in '' }} {{ 1.0 in [1] }} {{ 'b' in dict }} {{ 1 in dict }}",
        "{{ 'x' in undef }} {{ 1 in (1, 2) }} {{ 2 in range(3) }} {{ none in list }}",
        "{{ 1 in 'abc' }}",
        "{{ 'a' in none }}",
        "{{ 'a' in 1 }}",
        "{{ [] in {} }}",
    ],
    "undefined is empty when printed, tested or iterated, and an error otherwise": [
        "[{{ undef }}] {{ undef is defined }} {{ not undef }} {{ undef|length }} {% for x in undef %}{% endfor %}",
        "{{ dict.nope }}{{ dict['nope'] }}{{ list[9] }}{{ none.x }}{{ none['x'] }}{{ int.x }}{{ text[99] }}",
        "{{ undef is iterable }} {{ undef is sequence }} {{ undef is string }} {{ undef is mapping }}",
        "{{ undef.x }}",
        "{{ undef['x'] }}",
        "{{ undef() }}",
        "{{ undef + 1 }}",
        "{{ dict.nope.deeper }}",
        "{{ list[9].x }}",
        "{{ none.x.y }}",
        "{{ text.nope() }}",
        "{{ undef|tojson }}",
        "{{ undef[1:] }}",
    ],
    "a dot prefers methods, a subscript prefers members": [
        "{{ dict['items'] }} {{ dict.a }} {{ dict['a'][1] }} {{ dict.items()|length }} {{ dict.10 }}",
        "{{ dict.get('b') }} {{ dict.get('z') }} {{ dict.get('z', 'd') }} {{ {'get': 1}['get'] }}",
        "{{ [1, 2][1] }} {{ [1, 2].0 }} {{ 'abc'[-1] }} {{ list['0'] }} {{ [1, 2][true] }}",
        "{{ {1: 'a'}[1] }} {{ {1: 'a'}[1.0] }} {{ {1: 'a'}[true] }} {{ {'1': 'b'}[1] }}",
    ],
    "what would change a value, or reach into Python, is refused": [
        "{{ list.append(1) }}",
        "{{ dict.update({}) }}",
        "{{ dict.pop('a') }}",
        "{{ list.append is defined }}",
        "{{ text.__class__ }}",
        "{{ text.__class__.x }}",
        "{% set ns = namespace(_x=1) %}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
    ],
    "slices follow Python": [
        "{{ plain[1:3] }} {{ plain[::-1] }} {{ plain[-2:] }} {{ plain[:-2] }} {{ plain[4:1] }} {{ plain[::2] }}",
        "{{ numbers[1:] }} {{ numbers[::-1] }} {{ (1, 2, 3)[:2] }} {{ numbers[5:] }} {{ numbers[-9:2] }}",
        "{{ emoji[1:3] }} {{ emoji[::-1] }} {{ emoji[1] }} {{ emoji|length }}",
        "{{ dict[1:] }}",
        "{{ int[1:] }}",
        "{{ plain['a':] }}",
        "{{ plain[::0] }}",
    ],
    "strings are sequences of code points": [
        "{{ emoji|length }} {{ emoji|list }} {% for c in emoji %}[{{ c }}]{% endfor %}",
        "{{ emoji|reverse }} {{ emoji|first }} {{ emoji|last }} {{ decomposed|length }}",
        "{{ emoji.find('z') }} {{ emoji.index('é') }} {{ emoji.center(9, '*') }}",
        "[{{ emoji|center }}] [{{ 'x'|center(4) }}]",
    ],
    "`strip` takes a set of characters, and white space is Python's": [
        "[{{ text.strip() }}] [{{ text.lstrip() }}] [{{ text.rstrip() }}] [{{ text|trim }}]",
        "[{{ plain.strip('ac') }}] [{{ plain.lstrip('ab') }}] [{{ plain.rstrip('c') }}] [{{ plain|trim('a') }}]",
        "{{ spaces.strip()|tojson }} {{ spaces|trim|tojson }} {{ spaces.split()|tojson }}",
        "{{ '\\n x \\n'.strip('\\n')|tojson }} {{ '😀x😀'.strip('😀') }} {{ none|trim }} {{ list|trim }}",
    ],
    "`split` and its kin": [
        "{{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ ' a  b c'.split(none, 1) }}",
        "{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }}",
        "{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }}",
        "{{ 'abc'.partition('x') }} {{ 'a</think>b'.split('</think>')[-1] }}",
        "{{ 'a'.split('') }}",
        "{{ 'a'.split(1) }}",
    ],
    "methods of strings": [
        "{{ 'hELLO wORLD'.capitalize() }} {{ \"it's a dog\".title() }} {{ 'aB'.swapcase() }} {{ 'İß'.lower() }} {{ 'ß'.upper() }}",
        "{{ plain.replace('a', 'x') }} {{ plain.replace('a', 'x', 1) }} {{ plain.replace('', '-') }} {{ plain.count('abc') }}",
        "{{ plain.startswith('ab') }} {{ plain.startswith(('x', 'a')) }} {{ plain.endswith('bc') }} {{ plain.endswith('b', 0, 2) }}",
        "{{ plain.find('c', 3) }} {{ plain.rfind('a') }} {{ plain.find('z') }} {{ '-'.join(['a', 'b']) }} {{ '-'.join('ab') }}",
        "{{ '42'.isdigit() }} {{ ''.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ 'aé'.isalpha() }} {{ 'a1'.isalnum() }}",
        "{{ ' \\t'.isspace() }} {{ 'AB'.isupper() }} {{ 'ab1'.islower() }} {{ 'Ab Cd'.istitle() }} {{ 'é'.isascii() }}",
        "{{ '-42'.zfill(6) }} {{ 'x'.center(4) }}| {{ 'x'.ljust(3, '.') }} {{ 'x'.rjust(3) }} {{ 'a\\tb'.expandtabs(4) }}",
        "{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'ß'.casefold() }}",
        "{{ plain.index('z') }}",
        "{{ '-'.join([1]) }}",
        "{{ plain.replace('a', 1) }}",
        "{{ plain.startswith(none) }}",
    ],
    "`%` and the `format` filter are printf": [
        "{{ '%s and %r' % ('a', 'b') }} {{ '%d%%' % 5 }} {{ '%5.2f|%-5s|%05d|%+d' % (3.14159, 'x', 42, 7) }}",
        "{{ '%x %X %o %e %g %g' % (255, 255, 8, 12345.678, 0.00001, 1e20) }} {{ '%(a)s-%(b)d' % {'a': 1, 'b': 2} }}",
        "{{ '%s' % none }} {{ '%s' % [1, 2] }} {{ '%s, %s!'|format('Hi', 'you') }} {{ '%(x)s'|format(x=1) }} {{ 'a' % {} }}",
        "{{ '%.0f %.0f %.1f' % (0.5, 2.5, 0.25) }} {{ '%c' % 'x' }} {{ '%s' % undef }}|",
        "{{ '%s %s' % 'a' }}",
        "{{ '%s' % (1, 2) }}",
        "{{ '%d' % 'a' }}",
        "{{ '%y' % 1 }}",
    ],
    "`str.format` fills fields": [
        "{{ '{} {}'.format(1, 'a') }} {{ '{1} {0}'.format(1, 2) }} {{ '{x}'.format(x=none) }} {{ '{{}}'.format() }}",
        "{{ '{0.b} {0[a][1]}'.format(dict) }} {{ '{!r:>6}|'.format('a') }} {{ '{:{w}}|'.format('a', w=4) }}",
        "{{ '{:>5}|{:<5}|{:^5}|{:*^5}'.format('a', 'b', 'c', 'd') }} {{ '{:05.1f} {:,} {:x} {:+}'.format(3.14159, 1234567, 255, 3) }}",
        "{{ '{:.2%} {:e} {:g} {:.3}'.format(0.256, 1234.5, 1e-10, 'abcdef') }} {{ '{:#x} {:_}'.format(255, 1000000) }}",
        "{{ '{}'.format() }}",
        "{{ '{x}'.format(1) }}",
        "{{ '{}{0}'.format(1) }}",
        "{{ '{0}{}'.format(1) }}",
        "{{ '{'.format(1) }}",
        "{{ '{:d}'.format('a') }}",
    ],
    "`tojson` is `json.dumps` without escapes": [
        "{{ dict|tojson }} {{ list|tojson }} {{ 'é\"<>&\\'\\n\\u2028😀'|tojson }} {{ none|tojson }} {{ (1, 2)|tojson }}",
        "{{ dict|tojson(indent=2) }} {{ empty|tojson(indent=2) }} {{ [1]|tojson(indent='\\t') }} {{ [1]|tojson(indent=0) }}",
        "{{ dict|tojson(separators=(',', ':')) }} {{ dict|tojson(sort_keys=true) }} {{ 'é'|tojson(ensure_ascii=true) }} {{ 'é'|tojson(true) }}",
        "{{ whole|tojson }} {{ tiny|tojson }} {{ big|tojson }} {{ minus_zero|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}",
        "{{ messages|map(attribute='role')|tojson }}",
        "{{ {(1,): 2}|tojson }}",
        "{{ range(3)|tojson }}",
        "{{ '<'|safe|tojson }} {{ dict.items()|list|tojson }}",
    ],
    "filters on sequences": [
        "{{ numbers|sort }} {{ numbers|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ messages|sort(attribute='n')|map(attribute='role')|list }}",
        "{{ numbers|first }} {{ numbers|last }} {{ []|first }}| {{ numbers|reverse|list }} {{ numbers|sum }} {{ messages|sum(attribute='n') }}",
        "{{ numbers|min }} {{ words|max }} {{ []|max }}| {{ [1, 1.0, 'a', 'A']|unique|list }} {{ 'abc'|list }} {{ dict|list }}",
        "{{ numbers|join(', ') }} {{ list|join }} {{ messages|join(',', attribute='role') }} {{ [none]|join }} {{ 'abc'|join('-') }}",
        "{{ range(5)|batch(2)|list }} {{ range(5)|batch(2, 'x')|list }} {{ range(5)|slice(3)|list }} {{ messages|groupby('role')|list }}",
        "{{ dict|dictsort }} {{ {'b': 2, 'A': 1}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }} {{ dict|items|list }} {{ dict|length }}",
        "{{ [1, 'a']|sort }}",
        "{{ none|length }}",
        "{{ 5|first }}",
        "{{ 'a'|items|list }}",
        "{{ undef|items|list }} {{ none|list }}",
    ],
    "filters that select and map": [
        "{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|rejectattr('content', 'none')|map(attribute='n')|list }}",
        "{{ numbers|select('odd')|list }} {{ numbers|reject('gt', 1)|list }} {{ list|select|list }} {{ words|map('upper')|join }} {{ words|map('replace', 'b', 'x')|list }}",
        "{{ messages|map(attribute='nope', default='d')|list }} {{ [[1, 2]]|map(attribute=1)|list }} {{ [{'a': {'b': 1}}]|map(attribute='a.b')|list }}",
        "{{ messages|selectattr('role', 'in', ['user', 'tool'])|map(attribute='role')|list }} {{ undef|map('upper')|list }} {{ numbers|map('string')|list }}",
        "{{ numbers|map('nope')|list }}",
        "{{ numbers|select('nope')|list }}",
    ],
    "a generator is read once": [
        "{% set g = numbers|map('string') %}{{ g|join }}|{{ g|join }}",
        "{% set g = numbers|select %}{% for x in g %}{{ x }}{% break %}{% endfor %}{{ g|list }}",
    ],
    "filters on numbers and text": [
        "{{ '42'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ '2.9'|int }} {{ 2.9|int }} {{ 'ff'|int(base=16) }} {{ none|int }} {{ true|int }} {{ '1_0'|int }}",
        "{{ '2.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ ' 1e3 '|float }} {{ none|float(1) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 7|round }}",
        "{{ 2.1|round(0, 'ceil') }} {{ 2.99|round(1, 'floor') }} {{ -5|abs }} {{ 'hello wORLD'|title }} {{ 'aB'|capitalize }} {{ 'a b'|wordcount }}",
        "{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent(2, blank=true) }}|{{ 'a\\nb'|indent('> ') }}",
        "{{ 'hello big world'|truncate(9) }} {{ 'hello big world'|truncate(9, true, '') }} {{ 'hello big world'|truncate(8, leeway=0) }}",
        "{{ undef|default('d') }} {{ none|default('d') }} {{ none|default('d', true) }} {{ ''|d('e', boolean=true) }} {{ 0|default }}",
        "{{ 'a'|round }}",
        "{{ undef|int }}",
        "{{ 5|replace(5, 6) }} {{ 'aaa'|replace('a', 'b', 2) }} {{ none|upper }} {{ list|lower }}",
    ],
    "safe strings escape what is joined to them": [
        "{{ html|safe }} {{ html|e }} {{ html|safe + '<' }} {{ '<' + html|safe }} {{ html|safe ~ '<' }} {{ (html|safe)|e }}",
        "{{ (html|safe).replace('b', '<') }} {{ ('%s'|safe) % '<' }} {{ ('{}'|safe).format('<') }} {{ html|safe|upper }} {{ [html|safe] }}",
        "{{ (html|safe)|replace('b', '<') }} {{ '<'|safe in '<a>' }} {{ ('a,b'|safe).split(',') }} {{ '<'|safe == '<' }} {{ html|safe is string }} {{ html|safe is escaped }}",
        "{{ html|safe + 1 }}",
    ],
    "tests": [
        "{{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ true is boolean }} {{ none is none }}",
        "{{ 'a' is string }} {{ dict is mapping }} {{ list is sequence }} {{ 'a' is sequence }} {{ dict is sequence }} {{ dict is iterable }} {{ 1 is iterable }} {{ (1,) is sequence }}",
        "{{ dict.items() is sequence }} {{ numbers|map('string') is iterable }} {{ range(2) is sequence }} {{ range is callable }} {{ 1 is callable }}",
        "{{ 4 is divisibleby 2 }} {{ 4 is divisibleby(3) }} {{ 1 is eq 1.0 }} {{ 2 is gt 1 }} {{ 'a' is in 'abc' }} {{ 'AB' is upper }} {{ none is sameas none }}",
        "{{ undef is not defined }} {{ int is not none and yes is true }} {{ 1 is true }} {{ 3 is odd }} {{ no is false }}",
        "{{ 'a' is odd }}",
    ],
    "`for` gives `loop`, unpacks, filters, and has `else`": [
        "{% for x in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}",
        "{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}{% for k in dict %}{{ k }}{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
        "{% for x in numbers if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}{% for x in [] %}{% else %}none{% endfor %}",
        "{% for x in numbers %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}{% for x in numbers %}{% for y in words %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
        "{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}<{{ loop(x) }}>{{ loop.depth }}{% else %}{{ x }}{% endif %}{% endfor %}",
        "{% for x in numbers %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% else %}E{% endfor %}",
        "{% for x in numbers %}{% break %}{% else %}else after break{% endfor %}",
        "{% for x in none %}{% endfor %}",
        "{% for a, b in [[1]] %}{% endfor %}",
        "{% for a, b in [1] %}{% endfor %}",
        "{% for x in numbers %}{{ loop(x) }}{% endfor %}",
        "{% set ns = namespace(stop=false) %}{% for x in numbers if not ns.stop %}{{ x }}{% set ns.stop = true %}{% endfor %}",
    ],
    "names belong to the frame in which they are assigned": [
        "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
        "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}{% for i in [1] %}{% if yes %}{% set y = 2 %}{% endif %}{{ y }}{% endfor %}[{{ y }}]",
        "{% if no %}{% set int = 1 %}{% endif %}{{ int }}",
        "{% for i in [1] %}{{ int }}{% endfor %}{% set int = 1 %}{{ int }}",
        "{% macro m() %}{{ int }}{% endmacro %}{{ m() }}{% set int = 1 %}{{ m() }}",
        "{% set int %}{{ int }}{% endset %}[{{ int }}]",
        "{% set x = int %}{% set int = 2 %}{{ x }}{{ int }}",
        "{% with a = 1, b = int %}{% set int = 3 %}{{ a }}{{ b }}{{ int }}{% endwith %}{{ int }}{{ a }}",
        "{% set ns = namespace(n=0) %}{% for i in numbers %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }} {{ ns.nope }}|{{ ns.nope is defined }}",
        "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, %}{{ c }}{% set x | upper %}ab{% endset %}{{ x }}",
        "{% for int in [1] %}{{ int }}{% endfor %}{{ int }}",
        "{% set x = 1 %}{% set x.y = 2 %}",
        "{% set ns = namespace(dict, z=1) %}{{ ns.b }}{{ ns.z }}",
    ],
    "macros take arguments, defaults and callers": [
        "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(b=1, a=2) }} [{{ m() }}]",
        "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
        "{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) m(1) %}[{{ x }}{{ int }}]{% endcall %}",
        "{% macro m() %}{{ caller is defined }}{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}",
        "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }} {{ f.name }} {{ f.arguments }}",
        "{% macro m(*args) %}{% endmacro %}",
        "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
        "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}",
        "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
        "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}{% filter upper %}x{{ m('y') }}{% endfilter %}",
    ],
    "`generation` prints its body and keeps its names": [
        "a{% generation %}b{% set x = 1 %}{{ int }}{% endgeneration %}[{{ x }}]",
        "{% for m in messages %}{%- generation -%} {{ loop.index }} {%- endgeneration -%}{% endfor %}",
    ],
    "global functions": [
        "{{ range(3)|list }} {{ range(2, 4)|list }} {{ range(5, 0, -2)|list }} {{ dict|length }} {{ range(3)[1] }} {{ range(3)|length }}",
        "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %y %I%p %U %W %a %-d') }}",
        "{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
        "{{ raise_exception('told you') }}",
        "{{ range(0, 10, 0) }}",
        "{{ range(1000000) }}",
    ],
    "filters and tests that do not exist fail when they are called within a condition": [
        "{% if no %}{{ 1|nope }}{% endif %}ok",
        "{% if yes %}{{ 1|nope }}{% endif %}",
        "{{ (1|nope) if no else 'ok' }}",
        "{{ (1 is nope) if yes else 'ok' }}",
    ],
    "brackets inside of tags are balanced": [
        "{{ {'a': {'b': 1}}['a']['b'] }}{{ {} }}{{ [{}] }}",
        "{{ '}}' }}{{ '%}' }}{% raw %}{{ x }}{% endraw %}{{ '{{' }}",
    ],
    "what web pages need is there, since templates may use it": [
        "{{ 'a b&/é(~)*' | urlencode }}",
        "{{ {'a': 1, 'b c/': 'é'} | urlencode }}",
        "{{ [('a', 1), ['b', 'x y']] | urlencode }}",
        "{{ 5 | urlencode }}{{ none | urlencode }}",
        "{{ 13000 | filesizeformat }} {{ 1 | filesizeformat }} {{ '1000' | filesizeformat }}",
        "{{ 1500000 | filesizeformat(true) }} {{ 1.5 | filesizeformat }} {{ -5000 | filesizeformat }}",
        "{{ 1250 | filesizeformat }} {{ 1350 | filesizeformat }} {{ 10 ** 30 | filesizeformat }}",
        "{{ 'x' | filesizeformat }}",
        "{{ '<b>a  b</b> <!-- c > --> &amp; &#39;&#x41; <i' | striptags }}",
        "{{ 5 | striptags }}|{{ html | striptags }}",
    ],
    "`dict.fromkeys` makes a dictionary of keys": [
        "{{ dict.fromkeys(['a', 'b'], 1) }}",
        "{{ dict.fromkeys('ab') }}",
        "{{ dict(a=1).a }}",
    ],
    "`encode` gives bytes": [
        "{{ 'é\\n' .encode() }}",
        "{{ emoji.encode('utf-8') | length }}",
        "{{ 'it\\'s'.encode() }}",
        "{{ 'ab'.encode()[1] }} {{ 'ab'.encode() | list }}",
        "{{ 'é'.encode('UTF8').decode('utf-8') }}",
        "{{ 'x' if ''.encode() else 'y' }}",
    ],
    "`autoescape true` escapes what is printed": [
        "{% autoescape true %}{{ html }} {{ '<' }} {{ html | safe }} {{ [html] }} {{ none }}{{ undef }}<&{% endautoescape %}{{ html }}",
        "{% autoescape true %}{{ html | e }} {{ html | e | e }} {{ html | forceescape | forceescape }} {{ ('<' | safe) ~ '<' }}{% endautoescape %}",
        "{% autoescape true %}{{ (html | safe) ~ html }} {{ html ~ html }} {{ 1 ~ ('<' | safe) ~ undef ~ none }}{% endautoescape %}",
        "{% autoescape true %}{{ ('<b>' | safe) + html }} {{ html + ('<b>' | safe) }} {{ ('<' | safe) * 2 }} {{ '%s<' | safe % html }} {{ '%s<' % html }}{% endautoescape %}",
        "{% autoescape true %}{% autoescape false %}{{ html }}{% endautoescape %}{{ html }}{% endautoescape %}",
        "{% autoescape true %}{% set x %}<{{ html }}>{% endset %}{{ x }} {{ x is escaped }} {{ x + '<' }}{% endautoescape %} {{ x }}",
        "{% autoescape true %}{% set x | upper %}<{{ html }}>{% endset %}{{ x }}{% set n | length %}<<{% endset %}{{ n }} {{ n is escaped }}{% endautoescape %}",
        "{% autoescape true %}{% filter upper %}<{{ html }}>{% endfilter %} {% filter replace('<', '>') %}<b>{{ html }}{% endfilter %}{% endautoescape %}",
        "{% macro m(x) %}<{{ x }}>{% endmacro %}{% autoescape true %}{{ m(html) }} {{ m(html) is escaped }}{% endautoescape %}{{ m(html) is escaped }}",
        "{% autoescape true %}{% macro m(x) %}<{{ x }}>{{ caller() }}{% endmacro %}{% call m(html) %}<{{ html }}>{% endcall %}{% endautoescape %}",
        "{% autoescape true %}{% macro m(x) %}<{{ x }}>{{ x | join('<') is escaped }}{{ ['<' | safe] | join is escaped }}{% endmacro %}{{ m('&') }}{% endautoescape %}{% set y = 1 %}",
        "{% set ns = namespace() %}{% autoescape true %}{% macro m(x) %}<{{ x }}>{{ [x, '<' | safe] | join }}{% endmacro %}{% set ns.m = m %}{% endautoescape %}{{ ns.m('&') }}",
        "{% autoescape true %}{{ [html, '<b>' | safe] | join('<br>') }} {{ [html, 1] | join('<br>') }} {{ [html] | join('<br>' | safe) }} {{ ['<', '>'] | join('<br>' | safe) }}{% endautoescape %}",
        "{% autoescape true %}{{ html | replace('<', '[') }} {{ html | replace('<', '[' | safe) }} {{ (html | safe) | replace('<', '<<') }} {{ '&lt;' | replace('<' | safe, 'x') }}{% endautoescape %}",
        "{{ (html | safe) | replace('<', '<<') }} {{ [html, '<b>' | safe] | join('<br>') }}",
        "{% autoescape true %}{{ {'<': '>'} | tojson }} {{ {'<': html} }} {{ words | map('upper') | join('<') }} {{ [html] | map('safe') | join }}{% endautoescape %}",
        "{% autoescape true %}{{ (html | safe).upper() }} {{ (html | safe).replace('b', '<') }} {{ (html | safe).split('=') }} {{ (html | safe)[:3] }} {{ '<'.join([html]) }} {{ ('<' | safe).join([html, html | safe]) }}{% endautoescape %}",
        "{% autoescape true %}{{ ('<{}>' | safe).format(html) }} {{ '<{}>'.format(html | safe) }} {{ '<%s>' | format(html) }} {{ '<%s>' | safe | format(html) }}{% endautoescape %}",
        "{% autoescape true %}{{ html | upper }} {{ html | trim | safe | title }} {{ html | capitalize }} {{ html | indent(2, true) }} {{ html | safe | indent }} {{ html | truncate(5) }} {{ html | wordcount }} {{ html | length }}{% endautoescape %}",
        "{% autoescape true %}{% for c in '<&>' %}{{ c }}{{ loop.cycle('<', '>' | safe) }}{% endfor %}{% if html %}{{ html if true else 1 }}{% endif %}{% with a = html %}{{ a }}{% endwith %}{% endautoescape %}",
        "{% for i in [1, 2] %}{% autoescape true %}{{ html }}{% if i == 1 %}{% break %}{% endif %}{% endautoescape %}{% endfor %}{% macro m() %}<{% endmacro %}{{ m() is escaped }}{{ html }}",
        "{% autoescape true %}{% generation %}<{{ html }}{% endgeneration %}{{ 2 < 3 }}{{ html == (html | safe) }}{{ html | default('<') }}{{ undef | default('<') }}{{ undef | default('<' | safe) }}{% endautoescape %}",
        "{% autoescape true %}{{ html | striptags }} {{ html | urlencode }} {{ '<a href=x>&amp;amp;</a>' | striptags }} {{ html | string is escaped }} {{ html | safe | string is escaped }}{% endautoescape %}",
        "{% autoescape true %}{{ words | sort | join }} {{ [html] | first }} {{ [html | safe] | last }} {{ (html | safe, html) | list }} {{ html | list | join }} {{ (html | safe) | list | join('-') }}{% endautoescape %}",
    ],
    "`urlize` makes links of addresses": [
        "{{ 'see https://example.com/a?b=1&c=2, or www.example.org.' | urlize }}",
        "{{ 'mail a.b@example.com or mailto:x@y.de (http://a.b/c(d)) <http://e.fg>' | urlize }}",
        "{{ 'example.com foo.bar x.museum é.org http://1.2.3.4:80/x http://[::1]/ ftp://a.b' | urlize }}",
        "{{ 'http://example.com/long/path' | urlize(10) }} {{ 'http://example.com' | urlize(-3) }} {{ 'http://example.com' | urlize(0) }}",
        "{{ 'http://example.com' | urlize(nofollow=true, target='_<', rel='b a noopener') }}",
        "{{ 'tel:+1 my+x://a data' | urlize(extra_schemes=['tel:', 'my+x://']) }}",
        "{{ 'x' | urlize(extra_schemes=['x']) }}",
        "{{ html | urlize }} {{ html | safe | urlize }} {{ 5 | urlize }} {{ none | urlize }}",
        "{{ '  a\n\thttp://a.bc\n ' | urlize }}|{{ '' | urlize }}",
        "{{ '@a@b.c www.x@y.z a:b@c.de (a@b.cd) a@b.cd. <a@b.cd> &lt;www.ab.cd&gt;' | urlize }}",
        "{{ 'HTTP://EXAMPLE.COM Www.Example.Com MAILTO:a@b.cd example.COM http://ſ.ıi x.mİl' | urlize }}",
        "{{ 'http://a.bc/(x)) http://a.bc/&lt;x&gt; (((http://a.bc/(((y)' | safe | urlize }}",
        "{{ 'http://a.bc' | urlize('x') }}",
        "{% autoescape true %}{{ 'http://a.bc <' | urlize }} {{ 'http://a.bc' | urlize is escaped }}{% endautoescape %}{{ 'http://a.bc' | urlize is escaped }}",
    ],
    "`striptags` knows every character of HTML": [
        "{{ 'Main &raquo;\t<em>About</em> &copy &notin; &notit; &#x41;&#65;&#128;&#0;&#xD800;&#x110000; &#1; &#xFDD0;' | striptags }}",
        "{{ 'a<!-- <b> -->c<d>e <!-- f' | striptags }}|{{ 'a < b' | striptags }}|{{ '<a<b>c>d' | striptags }}|{{ '<!---->x<!-->y-->z' | striptags }}",
        "{{ '&amp;lt;&NotEqualTilde;&acE;&Aacute&AMP' | striptags }}",
    ],
    "`autoescape` by a value escapes as the rendering decides": [
        "{% autoescape yes %}{{ html }} {{ '<' }} {{ html | safe }} <{% endautoescape %}{{ html }}",
        "{% autoescape no %}{{ html }}{% endautoescape %}{% autoescape undef %}{{ html }}{% endautoescape %}{% autoescape html %}{{ html }}{% endautoescape %}",
        "{% autoescape 1 %}{{ html }}{% endautoescape %}{% autoescape 0 %}{{ html }}{% endautoescape %}{% autoescape none %}{{ html }}{% endautoescape %}{% autoescape '' %}{{ html }}{% endautoescape %}",
        "{% autoescape not no %}{{ ('<' | safe) ~ '<' }} {{ html ~ html }}{% endautoescape %} {% autoescape not false %}{{ ('<' | safe) ~ html }}{% endautoescape %}",
        "{% autoescape 1 == 1 %}{{ ('<' | safe) ~ html }}{% endautoescape %} {% autoescape [] %}{{ html }}{% endautoescape %} {% autoescape 'x' | upper %}{{ ('<' | safe) ~ html }}{% endautoescape %}",
        "{% autoescape yes %}{% autoescape false %}{{ html }}{% set x %}<{% endset %}{{ x is escaped }}{% endautoescape %}{{ html }}{% endautoescape %}",
        "{% autoescape true %}{% autoescape no %}{{ html }}{{ ('<' | safe) ~ '<' }}{% endautoescape %}{{ html }}{{ ('<' | safe) ~ '<' }}{% endautoescape %}",
        "{% autoescape yes %}{% set x %}<{{ html }}>{% endset %}{{ x }} {{ x is escaped }} {% set y | upper %}<{{ html }}>{% endset %}{{ y }}{% endautoescape %}",
        "{% autoescape yes %}{% macro m(x) %}<{{ x }}>{{ caller() }}{% endmacro %}{% call m(html) %}<{{ html }}>{% endcall %}{{ m is escaped }}{% endautoescape %}",
        "{% macro m(x) %}<{{ x }}>{% endmacro %}{% autoescape yes %}{{ m(html) }} {% filter upper %}<{{ html }}>{% endfilter %} {{ [html, '<' | safe] | join('<') }}{% endautoescape %}",
        "{% for v in [yes, no] %}{% autoescape v %}{{ html }}{% for c in '<&' %}{{ c }}{% endfor %}{% endautoescape %}{% endfor %}",
        "{% autoescape yes %}{% set yes = false %}{{ html }}{{ yes }}{% endautoescape %}{{ yes }}",
        "{% autoescape true %}{% autoescape no %}{{ '<' }}{{ '<' | upper }}{{ ['<'] }}{{ '<' ~ '>' }}{% autoescape false %}{{ '<' }}{{ html }}{% endautoescape %}{% endautoescape %}{% endautoescape %}",
        "{% autoescape yes %}{{ '<' | upper }}{{ ['<'] }}{{ '<' ~ '>' }}{{ '<' if true }}{{ 1 < 2 }}{% autoescape true %}{{ '<' }}{{ html }}{{ '<' ~ html }}{% endautoescape %}{% endautoescape %}",
        "{% autoescape yes.x.y %}{{ html }}{% endautoescape %}",
        "{% autoescape 1 / 0 %}{{ html }}{% endautoescape %}",
        "{% autoescape %}{{ html }}{% endautoescape %}",
    ],
    "`encode` knows the encodings of Unicode": [
        "{{ 'é😀'.encode('utf-16') }} {{ 'é😀'.encode('utf-16-le') }} {{ 'é😀'.encode('UTF_16BE') }}",
        "{{ 'é😀'.encode('utf-32') }} {{ 'a'.encode('utf-32-be') }} {{ 'é'.encode('utf-8-sig') }}",
        "{{ 'é'.encode('latin-1') }} {{ 'abc'.encode('ascii') }} {{ 'é'.encode('ISO-8859-1').decode('l1') }}",
        "{{ 'é'.encode('ascii') }}",
        "{{ 'xéé'.encode('us-ascii') }}",
        "{{ '😀'.encode('latin1') }}",
        "{{ 'a\u0394\u0395b'.encode('latin1') }}",
        "{{ 'aé😀'.encode('ascii', 'ignore') }} {{ 'aé😀'.encode('ascii', 'replace') }} {{ 'aé😀Δ'.encode('ascii', 'backslashreplace') }} {{ 'aé😀'.encode('ascii', errors='xmlcharrefreplace') }}",
        "{{ 'é'.encode('ascii', 'nonsense') }}",
        "{{ 'a'.encode('nonsense') }}",
        "{{ 'é😀'.encode('utf-16').decode('utf-16') }} {{ 'é😀'.encode('utf-32-le').decode('utf-32-le') }} {{ 'é'.encode('utf-8-sig').decode('utf-8-sig') }}",
        "{{ 'é'.encode().decode('ascii') }}",
        "{{ 'é'.encode().decode('latin-1') }}",
    ],
    "`autoescape false` changes nothing but the frame": [
        "{% set a = 1 %}{% autoescape false %}{{ html }}{% set a = 2 %}{{ a }}{% endautoescape %}{{ a }}",
    ],
    "`self` is the template, which has no blocks": [
        "{{ self }}",
        "{{ self.x }}{{ self is defined }}",
    ],
    "a slice of what is no sequence is undefined where it is written out, else an error": [
        "{{ 5[1:2] }}{{ none[1:] }}{{ true[:1] }}{{ 2.5[::2] }}{{ 5[1:2] is defined }}",
        "{{ int[1:2] }}",
        "{{ none[1:2] }}",
        "{{ range(9)[2:5] }} {{ range(9)[::-2] }} {{ range(0, 9, 2)[1:] | list }}",
    ],
}


class Generation(jinja2.ext.Extension):
    """The `generation` tag as transformers defines it, without its bookkeeping."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_print")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """A namespace that refuses names with an underscore in front, as transformers' does."""

    def __init__(*args, **kwargs):
        self, rest = args[0], args[1:]
        members = dict(*rest, **kwargs)
        for name in members:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, members)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(
                "Chat templates cannot store underscore-prefixed attributes on a namespace, "
                f"but got {name!r}. Please rename the attribute."
            )


def make_environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(format):
        return datetime.datetime(2026, 11, 21, 8, 0, 0).strftime(format)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols],
    )
    environment.filters["tojson"] = tojson
    environment.globals.update(
        raise_exception=raise_exception, strftime_now=strftime_now, namespace=Namespace
    )
    return environment


def record(environment, template):
    try:
        return {"template": template, "output": environment.from_string(template).render(VARIABLES)}
    except Exception as error:
        return {"template": template, "error": f"{type(error).__name__}: {error}"}


def main():
    environment = make_environment()
    cases = {
        fact: [record(environment, template) for template in templates]
        for fact, templates in CASES.items()
    }
    json.dump({"variables": VARIABLES, "cases": cases}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
