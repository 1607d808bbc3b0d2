"""Scripts lose their spaces, and nothing that a text, a template or a regular expression holds."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from damier.report.page import SCRIPTS, verbatim
from damier.report.scripts import _fewer, _lines, compact, variables


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ("const a = b + +c - -d;", "const a=b+ +c- -d;"),
        ("return a in b;", "return a in b;"),
        ("f(\"a  +  b\", 'c // d');", "f(\"a  +  b\",'c // d');"),
        (r'f("say \"  x\"", 1);', r'f("say \"  x\"",1);'),
        ("f(`a  ${g({ b: `c  ${ d }` })}  e`, 2);", "f(`a  ${g({b:`c  ${d}`})}  e`,2);"),
        ("x.replace(/ +/g, ' ').split(/[/ ]/);", "x.replace(/ +/g,' ').split(/[/ ]/);"),
        ("const m = a / b / c; // halves", "const m=a/b/c;"),
        ("return / a/.test(b) ? 1 : 2;", "return/ a/.test(b)?1:2;"),
        ("  // only a comment\n\n  go();", "go();"),
        ("for (const [a, b] of c) d ??= a ? .5 : b;", "for(const[a,b]of c)d??=a?.5:b;"),
        ("for (let k = 0; k < 3; k++) f(k - --n);", "for(let k=0;k<3;k++)f(k- --n);"),
        ("const a = (x) => x;\nconst b = async (x) => x;\nlet c;", "const a=x=>x,b=async(x)=>x;let c;"),
        ("f();\nconst a = 1;\ng();\nconst b = 2;", "f();const a=1;g();const b=2;"),
        ("const f = () => {\n  g();\n  h();\n};\nconst a = 1;", "const f=()=>{g();h()},a=1;"),
        ("const a = () => {\n  b();\n}\nconst c = 1;", "const a=()=>{b()}\nconst c=1;"),
        (
            "for (const a of b) {\n  c(a);\n}\nconst d = `${a ? `;` : { b }}`;",
            "for(const a of b){c(a)}\nconst d=`${a?`;`:{b}}`;",
        ),
    ],
)
def test_only_spaces_that_mean_nothing_go(script, kept):
    assert compact(script) == kept


@pytest.mark.parametrize("names", [SCRIPTS, ("core.js", "coclustering.js")])
def test_texts_of_the_page_s_scripts_are_whole(names):
    from damier.report import page

    whole = "".join((page._TEMPLATES / name).read_text("utf-8") for name in names)
    code = "\n".join(line for line in whole.splitlines() if not line.strip().startswith("//"))
    kept = verbatim(*names)
    for text in re.findall(r'"[^"\n]*"', re.sub(r"`[^`\n]*`|/[^/\n ]*/[a-z]*", "", code)):
        assert text in kept


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("const word = 1;\nf(word, `${word}`, ...word);", {"word"}),
        ("const word = 1;\nf({ word });", set()),
        ("const { word } = f;", set()),
        ("const { a, word = 2 } = f;", set()),
        ("const word = 1;\nf(a.word);", set()),
        ("const word = 1;\nf(a?.word);", set()),
        ("const word = 1;\nf({ word: 2 });", set()),
        ("const word = 1;\nf({ a, word() {} });", set()),
        ("f((word) => word + 1);", {"word"}),
        ("f(word);", set()),
        ("const a = 1, word = 2, [b, other] = f({ a: word });", {"word"}),
        ("const f = () => { const a = 1, word = 2; };", {"f", "a", "word"}),
        ("const name = 1;", set()),
    ],
)
def test_words_that_are_always_variables(script, found):
    assert variables(_fewer(_lines(script))) == found


def test_they_still_parse(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node; the browser's tests run them too")
    for names in (SCRIPTS, ("core.js", "coclustering.js")):
        file = tmp_path / "script.js"
        file.write_text(verbatim(*names), encoding="utf-8")
        assert subprocess.run([node, "--check", file], check=False).returncode == 0
