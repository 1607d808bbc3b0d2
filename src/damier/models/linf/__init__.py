"""Decision lists of rectangles: the model, its columns, and its arrays as kernels read them."""

from damier.models.linf.model import Cover, DecisionPath, LinfModel

__all__ = ["Cover", "DecisionPath", "LinfModel"]
