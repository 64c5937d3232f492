"""The web application: a few addresses behind a token, for this machine only."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from unskew.data.corrections import MARKS
from unskew.errors import UnskewError
from unskew.run_folder import CORRECTIONS, PARTITION
from unskew.view.guard import Guard
from unskew.view.marks import Marks
from unskew.view.neighbours import Neighbours
from unskew.view.pictures import Pictures
from unskew.view.query import PAGE, BadQuery, parse, select
from unskew.view.samples import Samples

HERE = Path(__file__).parent
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
LARGEST = 64_000  # bytes of a request


class Viewer:
    """What the addresses answer."""

    def __init__(self, samples: Samples, folder: Path, device: str = "auto") -> None:
        self.samples, self.folder = samples, folder
        self.marks = Marks(folder / CORRECTIONS)
        self.pictures = Pictures(samples)
        self.neighbours = Neighbours(samples, folder, device)

    def app(self, token: str, port: int) -> Guard:
        routes = [
            Route("/", self._asset("view.html")),
            Route("/view.css", self._asset("view.css")),
            Route("/view.js", self._asset("view.js")),
            Route("/about", self.about),
            Route("/samples", self.page),
            Route("/sample", self.sample),
            Route("/near", self.near),
            Route("/thumbnail", self.thumbnail),
            Route("/image", self.image),
            Route("/mark", self.mark, methods=["POST"]),
        ]
        errors: Any = {Refused: _refused, BadQuery: _bad_query, UnskewError: _failed}
        return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)], exception_handlers=errors), token, port)

    def about(self, request: Request) -> Response:
        samples = self.samples
        counts = np.bincount(samples.labels, minlength=len(samples.class_names))
        suspects = np.bincount(samples.labels[samples.conflicting], minlength=len(samples.class_names))
        classes = [
            {"name": name, "count": int(counts[i]), "conflicting": int(suspects[i])}
            for i, name in enumerate(samples.class_names)
        ]
        return JSONResponse(
            {
                "name": samples.name,
                "folder": str(self.folder),
                "count": len(samples),
                "conflicting": int(samples.conflicting.sum()),
                "missing": samples.missing,
                "classes": classes,
                "predicted": samples.predicted is not None,
                "small": samples.pixels.shape[1] <= 64,
                "marks": MARKS,
                "command": self._command(),
                "corrected": self._corrected(self.marks.current()),
            }
        )

    def _command(self) -> str:
        """What trains on the images as they were loaded here, with what was said of them."""
        command = ["unskew", "train", self.samples.source]
        for name, value in self.samples.loading.items():
            command += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])] if value else []
        partition, corrections = (str(self.folder / name) for name in (PARTITION, CORRECTIONS))
        return shlex.join([*command, "--partition", partition, "--corrections", corrections])

    def page(self, request: Request) -> Response:
        query = parse(request.query_params, len(self.samples.class_names))
        marks = self.marks.current()
        found = select(self.samples, query, marks)
        page = min(query.page, max(len(found) - 1, 0) // PAGE)
        shown = [self._card(int(i), marks) for i in found[page * PAGE : (page + 1) * PAGE]]
        pages = -(-len(found) // PAGE)
        return JSONResponse(
            {"total": len(found), "page": page, "pages": pages, "samples": shown, "corrected": self._corrected(marks)}
        )

    def sample(self, request: Request) -> Response:
        place = self._place(request)
        partition, more = self.samples.partition, self._card(place, self.marks.current())
        if partition.predictions is not None:
            answers = partition.predictions[place].tolist()
            names = self.samples.class_names
            more["history"] = [
                {"seen": k >= 0, "right": k == int(self.samples.labels[place]), "said": names[k] if k >= 0 else ""}
                for k in answers
            ]
        return JSONResponse(more)

    def near(self, request: Request) -> Response:
        found = self.neighbours.find(self._place(request))
        if "near" in found:
            marks = self.marks.current()
            found["near"] = [{**self._card(place, marks), "like": round(like, 3)} for place, like in found["near"]]
        return JSONResponse(found)

    def thumbnail(self, request: Request) -> Response:
        return _picture(self.pictures.thumbnail(self._place(request)))

    def image(self, request: Request) -> Response:
        return _picture(self.pictures.full(self._place(request)))

    async def mark(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "a correction is sent as JSON")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                raise Refused(413, "that is too long for a correction")
        try:
            given = json.loads(body)
            name, mark = given["id"], given["mark"]
        except (ValueError, TypeError, KeyError):
            raise Refused(400, "a correction has an id and a mark") from None
        if not isinstance(name, str) or name not in self.samples.place:
            raise Refused(404, "the data has no such sample")
        if mark is not None and mark not in MARKS:
            raise Refused(400, f"a mark is one of {', '.join(MARKS)}")
        marks = await run_in_threadpool(self.marks.change, name, mark)
        return JSONResponse({"id": name, "mark": marks.get(name), "corrected": self._corrected(marks)})

    def _place(self, request: Request) -> int:
        """Only what the data set calls a sample is one: no path is ever made from what a request says."""
        place = self.samples.place.get(request.query_params.get("id", ""))
        if place is None:
            raise Refused(404, "the data has no such sample")
        return place

    def _card(self, place: int, marks: Mapping[str, str]) -> dict[str, Any]:
        samples, name = self.samples, self.samples.ids[place]
        predicted = -1 if samples.predicted is None else int(samples.predicted[place])
        return {
            "id": name,
            "label": samples.class_names[int(samples.labels[place])],
            "predicted": samples.class_names[predicted] if predicted >= 0 else None,
            "score": round(float(samples.score[place]), 4),
            "conflicting": bool(samples.conflicting[place]),
            "mark": marks.get(name),
        }

    def _corrected(self, marks: Mapping[str, str]) -> dict[str, int]:
        ours = [mark for name, mark in marks.items() if name in self.samples.place]
        return {mark: ours.count(mark) for mark in MARKS}

    def _asset(self, name: str) -> Any:
        text = (HERE / name).read_text(encoding="utf-8")
        return lambda request: Response(text, media_type=KINDS[Path(name).suffix])


class Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def _picture(made: tuple[bytes, str]) -> Response:
    return Response(made[0], media_type=made[1], headers={"Cache-Control": "private, max-age=86400"})


def _refused(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refused) else 400
    return JSONResponse({"error": str(error)}, status_code=status)


def _bad_query(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)


def _failed(request: Request, error: Exception) -> Response:
    """The disk is full, the file was edited into something else: said on the page, which keeps the correction."""
    return JSONResponse({"error": str(error)}, status_code=507)
