/* fetch_sources: the sources by name, with their published checksums. */
#include "fetch/fetch_sources.h"

#include <stddef.h>
#include <string.h>

/* The files of Google's archives: SHA-256 as the replaced scripts check them (NVIDIA DeepLearningExamples,
 * data/GooglePretrainedWeightDownloader.py). */
#define GOOGLE_SUMS(config, data, index, meta, vocab)                                                        \
    {                                                                                                        \
        {"bert_config.json", config}, {"bert_model.ckpt.data-00000-of-00001", data},                         \
            {"bert_model.ckpt.index", index}, {"bert_model.ckpt.meta", meta}, {"vocab.txt", vocab},          \
        {                                                                                                    \
            0                                                                                                \
        }                                                                                                    \
    }
static const struct unpack_sum bert_base_uncased[] =
    GOOGLE_SUMS("7b4e5f53efbd058c67cda0aacfafb340113ea1b5797d9ce6ee411704ba21fcbc",
                "58580dc5e0bf0ae0d2efd51d0e8272b2f808857f0a43a88aaf7549da6d7a8a84",
                "04c1323086e2f1c5b7c0759d8d3e484afbb0ab45f51793daab9f647113a0117b",
                "dd5682170a10c3ea0280c2e9b9a45fee894eb62da649bbdea37b38b0ded5f60e",
                "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3");
static const struct unpack_sum bert_large_uncased[] =
    GOOGLE_SUMS("bfa42236d269e2aeb3a6d30412a33d15dbe8ea597e2b01dc9518c63cc6efafcb",
                "bc6b3363e3be458c99ecf64b7f472d2b7c67534fd8f564c0556a678f90f4eea1",
                "68b52f2205ffc64dc627d1120cf399c1ef1cbc35ea5021d1afc889ffe2ce2093",
                "6fcce8ff7628f229a885a593625e3d5ff9687542d5ef128d9beb1b0c05edc4a1",
                "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3");
static const struct unpack_sum bert_base_cased[] =
    GOOGLE_SUMS("f11dfb757bea16339a33e1bf327b0aade6e57fd9c29dc6b84f7ddb20682f48bc",
                "734d5a1b68bf98d4e9cb6b6692725d00842a1937af73902e51776905d8f760ea",
                "517d6ef5c41fc2ca1f595276d6fccf5521810d57f5a74e32616151557790f7b1",
                "5f8a9771ff25dadd61582abb4e3a748215a10a6b55947cbb66d0f0ba1694be98",
                "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02");
static const struct unpack_sum bert_large_cased[] =
    GOOGLE_SUMS("7adb2125c8225da495656c982fd1c5f64ba8f20ad020838571a3f8a954c2df57",
                "6ff33640f40d472f7a16af0c17b1179ca9dcc0373155fb05335b6a4dd1657ef0",
                "ef42a53f577fbe07381f4161b13c7cab4f4fc3b167cec6a9ae382c53d18049cf",
                "d2ddff3ed33b80091eac95171e94149736ea74eb645e575d942ec4a5e01a40a1",
                "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02");
static const struct unpack_sum bert_base_multilingual_cased[] =
    GOOGLE_SUMS("e76c3964bc14a8bb37a5530cdc802699d2f4a6fddfab0611e153aa2528f234f0",
                "55b8a2df41f69c60c5180e50a7c31b7cdf6238909390c4ddf05fbc0d37aa1ac5",
                "7d8509c2a62b4e300feb55f8e5f1eef41638f4998dd4d887736f42d4f6a34b37",
                "95e5f1997e8831f1c31e5cf530f1a2e99f121e9cd20887f2dce6fe9e3343e3fa",
                "fe0fda7c425b48c516fc8f160d594c8022a0808447475c1a7c6d6479763f310c");
static const struct unpack_sum bert_base_multilingual_uncased[] =
    GOOGLE_SUMS("49063bb061390211d2fdd108cada1ed86faa5f90b80c8f6fdddf406afa4c4624",
                "3cd83912ebeb0efe2abf35c9f1d5a515d8e80295e61c49b75c8853f756658429",
                "87c372c1a3b1dc7effaaa9103c80a81b3cbab04c7933ced224eec3b8ad2cc8e7",
                "27f504f34f02acaa6b0f60d65195ec3e3f9505ac14601c6a32b421d0c8413a29",
                "87b44292b452f6c05afa49b2e488e7eedf79ea4f4c39db6f2f4b37764228ef3f");
static const struct unpack_sum bert_base_chinese[] =
    GOOGLE_SUMS("7aaad0335058e2640bcb2c2e9a932b1cd9da200c46ea7b8957d54431f201c015",
                "756699356b78ad0ef1ca9ba6528297bcb3dd1aef5feadd31f4775d7c7fc989ba",
                "46315546e05ce62327b3e2cd1bed22836adcb2ff29735ec87721396edb21b82e",
                "c0f8d51e1ab986604bc2b25d6ec0af7fd21ff94cf67081996ec3f3bf5d823047",
                "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c");

static const struct fetch_file google[] = {
    {.url = "https://storage.googleapis.com/bert_models/2018_10_18/uncased_L-12_H-768_A-12.zip",
     .path = "google_pretrained_weights/uncased_L-12_H-768_A-12.zip",
     .bytes = -1,
     .inside = bert_base_uncased,
     .unpack = true},
    {.url = "https://storage.googleapis.com/bert_models/2018_10_18/uncased_L-24_H-1024_A-16.zip",
     .path = "google_pretrained_weights/uncased_L-24_H-1024_A-16.zip",
     .bytes = -1,
     .inside = bert_large_uncased,
     .unpack = true},
    {.url = "https://storage.googleapis.com/bert_models/2018_10_18/cased_L-12_H-768_A-12.zip",
     .path = "google_pretrained_weights/cased_L-12_H-768_A-12.zip",
     .bytes = -1,
     .inside = bert_base_cased,
     .unpack = true},
    {.url = "https://storage.googleapis.com/bert_models/2018_10_18/cased_L-24_H-1024_A-16.zip",
     .path = "google_pretrained_weights/cased_L-24_H-1024_A-16.zip",
     .bytes = -1,
     .inside = bert_large_cased,
     .unpack = true},
    {.url = "https://storage.googleapis.com/bert_models/2018_11_23/multi_cased_L-12_H-768_A-12.zip",
     .path = "google_pretrained_weights/multi_cased_L-12_H-768_A-12.zip",
     .bytes = -1,
     .inside = bert_base_multilingual_cased,
     .unpack = true},
    {.url = "https://storage.googleapis.com/bert_models/2018_11_03/multilingual_L-12_H-768_A-12.zip",
     .path = "google_pretrained_weights/multilingual_L-12_H-768_A-12.zip",
     .bytes = -1,
     .inside = bert_base_multilingual_uncased,
     .unpack = true},
    {.url = "https://storage.googleapis.com/bert_models/2018_11_03/chinese_L-12_H-768_A-12.zip",
     .path = "google_pretrained_weights/chinese_L-12_H-768_A-12.zip",
     .bytes = -1,
     .inside = bert_base_chinese,
     .unpack = true},
    {0},
};

/* MD5 of squad_download.sh of the replaced scripts */
static const struct fetch_file squad[] = {
    {.url = "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json",
     .path = "squad/v1.1/train-v1.1.json",
     .bytes = 30288272,
     .sum = "981b29407e0affa3b1b156f72073b945"},
    {.url = "https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v1.1.json",
     .path = "squad/v1.1/dev-v1.1.json",
     .bytes = 4854279,
     .sum = "3e85deb501d4e538b6bc56f786231552"},
    {.url = "https://worksheets.codalab.org/rest/bundles/0xbcd57bee090b421c982906709c8c27e1/contents/blob/",
     .path = "squad/v1.1/evaluate-v1.1.py",
     .bytes = -1,
     .sum = "afb04912d18ff20696f7f88eed49bea9"},
    {.url = "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v2.0.json",
     .path = "squad/v2.0/train-v2.0.json",
     .bytes = -1,
     .sum = "62108c273c268d70893182d5cf8df740"},
    {.url = "https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v2.0.json",
     .path = "squad/v2.0/dev-v2.0.json",
     .bytes = -1,
     .sum = "246adae8b7002f8679c027697b0b7cf8"},
    {.url = "https://worksheets.codalab.org/rest/bundles/0x6b567e1cf2e041ec80d7098f031c5c9e/contents/blob/",
     .path = "squad/v2.0/evaluate-v2.0.py",
     .bytes = -1,
     .sum = "ff23213bed5516ea4a6d9edb6cd7d627"},
    {0},
};

static const struct fetch_file wikipedia[] = {
    {.url = "https://dumps.wikimedia.org/{}wiki/latest/{}wiki-latest-pages-articles.xml.bz2",
     .path = "wikicorpus_{}/wikicorpus_{}.xml.bz2",
     .bytes = -1,
     .about = "20.6 GB for English in 2022",
     .sums_url = "https://dumps.wikimedia.org/{}wiki/latest/{}wiki-latest-md5sums.txt"},
    {0},
};

/* OSCAR 2019, as in the BLOOM recipe, in 670 parts for English */
static const struct fetch_file oscar[] = {
    {.url = "https://s3.amazonaws.com/datasets.huggingface.co/oscar/1.0/unshuffled/deduplicated/{}/"
            "{}_sha256.txt",
     .path = "oscar-{}/{}_sha256.txt",
     .bytes = -1,
     .about = "550 GB on disk for English",
     .is_list = true},
    {0},
};

static const struct fetch_source sources[] = {
    {"wikipedia", "the newest dump of articles, in --language", wikipedia},
    {"google", "Google's BERT archives: vocabularies and TensorFlow checkpoints", google},
    {"squad", "SQuAD v1.1 and v2.0 with their evaluation scripts", squad},
    {"oscar", "OSCAR's deduplicated text, in --language, by its list of files", oscar},
    {0},
};

const struct fetch_source *fetch_source_find(const char *name)
{
    for (const struct fetch_source *s = sources; s->name != NULL; s++) {
        if (strcmp(s->name, name) == 0) {
            return s;
        }
    }
    return NULL;
}

const struct fetch_source *fetch_source_first(void)
{
    return sources;
}
